/// What the live tests of the HTTP client share: a context, manual time, a client, and coroutines that fetch.
#pragma once
#include <reagent/net/http_client.hpp>
#include <reagent/testing/byte_server.hpp>
#include <reagent/testing/http_text.hpp>
#include <reagent/testing/manual_clock.hpp>
#include <reagent/testing/run.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace reagent::net_tests {

/// Reads the rest of a body.
inline awaitable<std::string> rest_of(http_exchange& x)
{
    std::string body;
    for (;;) {
        const std::span<const char> bytes = co_await x.read_some();
        if (bytes.empty()) break;
        body.append(bytes.data(), bytes.size());
    }
    co_return body;
}

/// `200 body`.
inline awaitable<std::string> fetch(http_client client, http_request request)
{
    http_exchange x = co_await client.open(std::move(request));
    const std::string body = co_await rest_of(x);
    co_return std::to_string(x.head().status) + " " + body;
}

/// The code an operation ended with; no error when it succeeded.
inline error_code code_of_failure(const std::exception_ptr& failure)
{
    return failure ? code_of(failure) : error_code();
}

/// An operation with a switch to cancel it.
class cancellable {
public:
    cancellable(asio::io_context& context, awaitable<std::string> operation)
    {
        auto finish = [s = state_](std::exception_ptr e, std::string value) {
            s->failure = e;
            s->value = std::move(value);
            s->done = true;
        };
        asio::co_spawn(context, std::move(operation), asio::bind_cancellation_slot(signal_.slot(), std::move(finish)));
    }
    void cancel() { signal_.emit(asio::cancellation_type::terminal); }
    bool done() const { return state_->done; }
    error_code code() const { return code_of_failure(state_->failure); }
    std::string message() const { return state_->failure ? message_of(state_->failure) : state_->value; }
    const std::string& value() const { return state_->value; }

private:
    struct state {
        bool done = false;
        std::exception_ptr failure;
        std::string value;
    };
    std::shared_ptr<state> state_ = std::make_shared<state>();
    asio::cancellation_signal signal_;
};

inline std::size_t open_descriptors()
{
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
    return n;
}

/// Never answers, ends when cancelled.
class silent_resolver final : public resolver {
public:
    explicit silent_resolver(asio::io_context& context) : context_(context) {}
    awaitable<std::vector<ip_address>> resolve(std::string) override
    {
        ++asked;
        asio::steady_timer never(context_);
        never.expires_at(asio::steady_timer::time_point::max());
        ++waiting;
        struct leave {
            int& n;
            ~leave() { --n; }
        } const at_exit{waiting};
        co_await never.async_wait(asio::use_awaitable);
        co_return std::vector<ip_address>();
    }
    int asked = 0, waiting = 0;

private:
    asio::io_context& context_;
};

/// Names from a table; anything else fails as the system's resolver would.
class table_resolver final : public resolver {
public:
    std::vector<std::pair<std::string, std::vector<ip_address>>> names;
    std::vector<std::string> forgotten;
    void forget(const std::string& host) noexcept override { forgotten.push_back(host); }
    awaitable<std::vector<ip_address>> resolve(std::string host) override
    {
        for (const auto& [name, addresses] : names)
            if (name == host) co_return addresses;
        throw error(errc::resolve_failed, "[resolver] " + host + ": no such name", true);
    }
};

struct world {
    asio::io_context context;
    std::shared_ptr<testing::manual_clock> clock = std::make_shared<testing::manual_clock>();
    http_client_options options;

    world() { options.clock = clock; }
    http_client client() { return http_client(context.get_executor(), options); }
    testing::byte_server server(testing::byte_script script) { return testing::byte_server(context.get_executor(), std::move(script)); }
    testing::byte_server server(std::vector<testing::byte_script> scripts) { return testing::byte_server(context.get_executor(), std::move(scripts)); }
    static http_request get(const testing::byte_server& s, std::string_view target = "/")
    {
        return http_request("GET", url::parse_or_throw(s.origin() + std::string(target), "url"));
    }
    std::size_t idle() { return testing::run_until_idle(context); }
    bool until(const std::function<bool()>& done) { return testing::run_until(context, done); }
    /// Runs until `count` is `wanted`, as long as it grows.
    bool steadily(const std::function<std::size_t()>& count, std::size_t wanted)
    {
        for (std::size_t n = count(); n < wanted; n = count())
            if (!testing::run_until(
                    context, [&] { return count() > n; }, std::chrono::seconds(2)))
                return false;
        return true;
    }
    /// For what follows from the handlers that are ready: a broken rule shows without the long wait.
    bool soon(const std::function<bool()>& done) { return testing::run_until(context, done, std::chrono::seconds(1)); }
};

}  // namespace reagent::net_tests
