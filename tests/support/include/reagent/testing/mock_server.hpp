#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/base/usd.hpp>
#include <reagent/net/tls_options.hpp>
#include <reagent/testing/mock_fixtures.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reagent::inline v0::testing {

/// One request as the mock saw it. `to_json` is a journal line.
class mock_entry {
public:
    std::uint64_t sequence = 0;    ///< arrival order, from 1
    std::uint64_t connection = 0;  ///< from 1
    double arrival_ms = 0;         ///< since the server started
    double duration_ms = 0;        ///< until its end
    std::string method, path;
    std::vector<std::pair<std::string, std::string>> headers;  ///< lower-case names; credentials read `***`
    std::string body;
    bool body_dropped = false;   ///< the journal outgrew `mock_options::max_journal_bytes`, and `body` is empty now
    std::size_t body_bytes = 0;  ///< what a dropped body had
    std::string model;
    bool stream = false;
    std::int64_t fixture = -1;  ///< which answered, -1 for none
    std::string fault;          ///< empty when none
    /// Bounds of the request: bytes of its body, and its `max_tokens` or `max_completion_tokens`.
    std::uint64_t worst_input = 0, worst_output = 0;
    /// What it was told to have used; zero for errors.
    std::uint64_t input_tokens = 0, output_tokens = 0;
    std::size_t open = 0;  ///< requests open at its arrival, itself included
    usd exposure;          ///< worst case of the open ones plus usage of the answered ones at its arrival, itself included
    int status = 0;
    std::size_t sent = 0;      ///< bytes of the answer
    std::string end = "open";  ///< `complete`, `client_fin`, `client_rst`, `reset`, `closed`, `stopped`
    json to_json() const;
};

/// Counts since the start.
class mock_stats {
public:
    std::uint64_t connections = 0, requests = 0, answered = 0, cut = 0;
    std::size_t open = 0, max_open = 0;
    std::uint64_t input_tokens = 0, output_tokens = 0;  ///< usage told, parts of cut answers included
    usd exposure, max_exposure;                         ///< see `mock_entry::exposure`
    std::map<std::string, std::uint64_t> faults;
    json to_json() const;
};

class mock_options {
public:
    mock_options() : fixtures_(default_mock_fixtures()) {}
    mock_options& port(std::uint16_t p) { return port_ = p, *this; }
    /// The IP address to listen on.
    mock_options& address(std::string a) { return address_ = std::move(a), *this; }
    mock_options& fixtures(mock_fixtures f) { return fixtures_ = std::move(f), *this; }
    mock_options& latency(std::chrono::milliseconds t) { return latency_ = t, *this; }
    mock_options& gap(std::chrono::milliseconds t) { return gap_ = t, *this; }
    mock_options& chunk_size(std::uint64_t bytes) { return chunk_size_ = bytes, *this; }
    /// The share of requests that get `fault`, drawn per request from the seed and its sequence number.
    mock_options& fault_rate(mock_fault fault, double share)
    {
        fault_rates_.emplace_back(std::move(fault), share);
        return *this;
    }
    mock_options& seed(std::uint64_t s) { return seed_ = s, *this; }
    /// Prices of a million tokens, for the exposure. Default 1 and 1.
    mock_options& rates(usd input, usd output) { return input_rate_ = input, output_rate_ = output, *this; }
    /// The output bound of a request that names none.
    mock_options& default_max_tokens(std::uint64_t n) { return default_max_tokens_ = n, *this; }
    /// Called for each request when it ends, on the server's thread.
    mock_options& on_entry(std::function<void(const mock_entry&)> f) { return on_entry_ = std::move(f), *this; }
    /// Entries kept in memory for `GET /__journal`; the oldest are dropped.
    mock_options& max_journal(std::size_t n) { return max_journal_ = n, *this; }
    /// Bytes of request bodies kept with them; over that the oldest answered requests lose theirs, and their lines say `body_dropped`.
    mock_options& max_journal_bytes(std::size_t n) { return max_journal_bytes_ = n, *this; }
    /// Largest request body taken, else 413.
    mock_options& max_body(std::size_t n) { return max_body_ = n, *this; }
    /// Serves https with this certificate instead of http.
    mock_options& tls(tls_server_options t) { return tls_ = std::move(t), *this; }
    /// Paces answers; the real clock unless a test hands in a manual one.
    mock_options& clock(clock_ptr c) { return clock_ = std::move(c), *this; }

    std::uint16_t port_ = 0;
    std::string address_ = "127.0.0.1";
    mock_fixtures fixtures_;
    std::chrono::milliseconds latency_{0}, gap_{0};
    std::uint64_t chunk_size_ = 24;
    std::vector<std::pair<mock_fault, double>> fault_rates_;
    std::uint64_t seed_ = 1;
    usd input_rate_ = usd::from_nanos(1'000'000'000), output_rate_ = usd::from_nanos(1'000'000'000);
    std::uint64_t default_max_tokens_ = 16'384;
    std::function<void(const mock_entry&)> on_entry_;
    std::size_t max_journal_ = 10'000, max_journal_bytes_ = std::size_t{64} << 20;
    std::size_t max_body_ = std::size_t{64} << 20;
    clock_ptr clock_;
    std::optional<tls_server_options> tls_;
};

/// Reads `429=0.1,500=0.05,reset=0.02` into `options`. Throws `config_error` naming the part that is wrong.
void parse_fault_rates(std::string_view text, mock_options& options);

/// A provider server on loopback: OpenAI chat and Responses, Anthropic, Gemini and Ollama, as JSON and as streams, answers by fixtures, faults on demand, TLS
/// where asked for. One thread, tens of thousands of open streams. `POST` to the path of a wire (docs/mock.md), `GET /v1/models`, `GET /health`, `GET /__journal` (JSON lines), `GET /__stats`.
/// Runs on the executor given (single-threaded; its accept counts as work until `stop`) or on a thread of its own, which the destructor joins.
/// Members may be called from any thread; on an executor given, the destructor belongs to its thread, or to a time when nothing runs it.
/// Construction throws `error` when the port cannot be had, `config_error` for a certificate that cannot be used.
class mock_server {
public:
    mock_server(any_io_executor ex, mock_options options);
    explicit mock_server(mock_options options = mock_options());
    mock_server(const mock_server&) = delete;
    mock_server& operator=(const mock_server&) = delete;
    ~mock_server();

    std::uint16_t port() const noexcept;
    /// `http://127.0.0.1:PORT`, `https` with TLS, and the same with `/v1`.
    std::string origin() const;
    std::string base_url() const;
    /// Stops accepting and closes every connection.
    void stop();
    mock_stats stats() const;
    /// Entries kept, by sequence; those still open read `open`.
    std::vector<mock_entry> journal() const;
    /// Blocks until `seen(stats)` holds, at most `limit`: for a server on a thread of its own.
    bool wait_until(const std::function<bool(const mock_stats&)>& seen, std::chrono::milliseconds limit = std::chrono::seconds(20)) const;

private:
    struct impl;
    struct own_thread;
    std::shared_ptr<impl> impl_;
    std::unique_ptr<own_thread> thread_;
};

}  // namespace reagent::inline v0::testing
