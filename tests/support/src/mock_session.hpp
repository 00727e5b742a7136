/// One request of the mock and its answer, and what all of them share. Everything runs on one thread.
#pragma once
#include "mock_ledger.hpp"
#include "mock_plan.hpp"
#include "socket_watch.hpp"

#include <reagent/net/deadline_queue.hpp>
#include <reagent/net/http_server.hpp>
#include <reagent/testing/mock_server.hpp>

#include <optional>
#include <unordered_map>

namespace reagent::inline v0::testing_detail {

class mock_session;

/// What sessions share: fixtures with their counters, and the books.
struct mock_shared {
    mock_shared(any_io_executor executor, testing::mock_options o);
    any_io_executor ex;
    testing::mock_options options;
    clock_ptr clock;
    steady_time started;
    mock_ledger ledger;
    deadline_queue pace;                                                    ///< of the answers that pause
    socket_watch clients;                                                   ///< of the chats that are open
    std::vector<std::uint64_t> held, faulted;                               ///< by fixture: how often it has held, and how often its fault was played
    std::unordered_map<std::uint64_t, std::shared_ptr<mock_session>> live;  ///< by number of the session
    std::uint64_t sessions = 0;

    double ms_since_start() const;
    /// The first fixture that holds, or -1. Counts.
    std::int64_t choose(const chat_facts& facts);
    mock_fault choose_fault(std::int64_t fixture, std::uint64_t sequence);
    /// Ends the chats whose client has gone without our having read it yet.
    void reap();
};

class mock_session : public std::enable_shared_from_this<mock_session>, private deadline_entry {
public:
    mock_session(std::shared_ptr<mock_shared> shared, raw_wire wire, std::uint64_t number);
    void handle(server_request&& request);
    /// Ends it under that name, and the connection.
    void finish(const char* how, bool with_reset = false);

private:
    void chat(server_request& request, const mock_route& route);
    steady_time on_deadline(steady_time now) override;
    void begin(answer_plan plan, std::chrono::milliseconds latency, std::chrono::milliseconds gap);
    void pump();
    bool pause_after(std::size_t written_to);
    void answered();
    void settle(const char* how);
    void leave();

    std::shared_ptr<mock_shared> shared_;
    raw_wire wire_;
    std::uint64_t number_;
    std::chrono::milliseconds gap_{0};
    answer_plan plan_;
    std::size_t sent_ = 0, piece_ = 0;
    std::shared_ptr<mock_entry> entry_;  // null for a request that is not journalled
    int watched_ = -1;                   // the socket, while `clients` has it
    bool chat_ = false;
    bool over_ = false;
};

}  // namespace reagent::inline v0::testing_detail
