/// One connection of the mock, and what all of them share. Everything runs on one thread.
#pragma once
#include "mock_http.hpp"
#include "mock_ledger.hpp"
#include "mock_wire.hpp"

#include <reagent/testing/mock_server.hpp>

#include <boost/asio/ip/tcp.hpp>

#include <optional>
#include <unordered_map>

namespace reagent::inline v0::testing_detail {

class mock_session;

/// What sessions share: fixtures with their counters, the books, the scratch buffer of all reads.
struct mock_shared {
    mock_shared(any_io_executor executor, testing::mock_options o);
    any_io_executor ex;
    testing::mock_options options;
    clock_ptr clock;
    steady_time started;
    mock_ledger ledger;
    std::string scratch;
    std::vector<std::uint64_t> held, faulted;  ///< by fixture: how often it has held, and how often its fault was played
    std::unordered_map<std::uint64_t, std::shared_ptr<mock_session>> live;

    double ms_since_start() const;
    /// The first fixture that holds, or -1. Counts.
    std::int64_t choose(const chat_facts& facts);
    mock_fault choose_fault(std::int64_t fixture, std::uint64_t sequence);
    /// Ends the sessions whose client has gone without our having read it yet.
    void reap();
};

class mock_session : public std::enable_shared_from_this<mock_session> {
public:
    mock_session(std::shared_ptr<mock_shared> shared, boost::asio::ip::tcp::socket socket, std::uint64_t number);
    void start() { wait_read(); }
    /// Whether a request is open whose client has closed.
    bool abandoned();
    /// Ends the open request under that name and closes.
    void finish(const char* how, bool with_reset = false);

private:
    void wait_read();
    void on_readable();
    void run();
    void refuse(int status, std::string_view message);
    void handle(mock_request request);
    void chat(mock_request& request, const std::shared_ptr<mock_entry>& entry);
    void begin(answer_plan plan, std::chrono::milliseconds latency, std::chrono::milliseconds gap);
    void pump();
    bool pause_after(std::size_t written_to);
    void answered();
    void settle(const char* how);

    std::shared_ptr<mock_shared> shared_;
    boost::asio::ip::tcp::socket socket_;
    std::uint64_t number_;
    mock_request_reader reader_;
    std::unique_ptr<clock_timer> pace_timer_;
    std::chrono::milliseconds gap_{0};
    answer_plan plan_;
    std::size_t sent_ = 0, piece_ = 0;
    std::shared_ptr<mock_entry> entry_;  // of the open request, null for one that is not journalled
    bool chat_ = false;
    bool busy_ = false;      // an answer is under way
    bool running_ = false;   // inside run()
    bool draining_ = false;  // our side is shut down; what still comes is dropped
    bool closed_ = false;
};

}  // namespace reagent::inline v0::testing_detail
