/// The state behind `json_rpc_peer`, shared by its calls and its own coroutines.
#pragma once
#include "parking.hpp"

#include <reagent/net/deadline_queue.hpp>
#include <reagent/net/json_rpc_peer.hpp>

#include <boost/asio/cancellation_signal.hpp>

#include <deque>
#include <list>
#include <map>
#include <memory>

namespace reagent::inline v0 {

struct json_rpc_peer::impl final : std::enable_shared_from_this<impl> {
    /// A call under way; in its coroutine's hands and in the map.
    struct pending final : deadline_entry {
        pending(impl& p, rpc_call& request);
        steady_time on_deadline(steady_time now) override;
        steady_time due() const noexcept;

        impl& peer;
        std::int64_t id;
        std::string method;
        duration timeout, max_total;
        steady_time started, moved;
        bool cancellable;
        bool done = false;
        net_detail::parking place;
        rpc_reply reply;
    };
    struct outgoing {
        std::string text;
        std::int64_t id = 0;  ///< of our call; 0 for all else
    };
    /// A coroutine of ours: reader, writer, or the handler of a request. Owned by the list and its completion handler.
    struct task {
        asio::cancellation_signal stop;
        json id;               ///< of the request; null for reader and writer
        bool aborted = false;  ///< no answer is wanted
    };

    impl(any_io_executor e, std::unique_ptr<message_link> l, json_rpc_options o);

    void start();
    void enqueue(std::string text, std::int64_t id);
    void send_answer(std::string text);
    void settle(pending& p, rpc_status status, std::string why);
    /// Takes the call back if it is not written, else tells the peer.
    void give_up(pending& p, std::string_view reason);
    /// The end of the connection for everyone; the first one counts. `by_itself`: the host did not ask for it and is told.
    void fail(const std::string& why, bool by_itself);
    void take(std::string_view text);
    void take_message(json message);
    void take_request(rpc_message m);
    void take_response(rpc_message m);
    void spawn(const std::shared_ptr<task>& t, awaitable<void> work);
    void left(const std::shared_ptr<task>& t);
    void stop_tasks(bool handlers_only);
    void abort(const std::shared_ptr<task>& t);
    const std::shared_ptr<task>* serving(const json& id) const noexcept;

    static awaitable<void> read_all(std::shared_ptr<impl> self);
    static awaitable<void> write_all(std::shared_ptr<impl> self);
    static awaitable<void> serve(std::shared_ptr<impl> self, std::shared_ptr<task> t, request_handler handler, json params, std::string method);
    static awaitable<void> converse(std::shared_ptr<impl> self, std::shared_ptr<pending> p);
    static awaitable<void> end(std::shared_ptr<impl> self);

    any_io_executor ex;
    std::unique_ptr<message_link> link;
    json_rpc_options options;
    clock_ptr time;
    deadline_queue deadlines;
    std::map<std::int64_t, std::shared_ptr<pending>> calls;
    std::deque<outgoing> queue;
    std::list<std::shared_ptr<task>> tasks;
    std::size_t handlers = 0;
    std::map<std::string, request_handler, std::less<>> requests;
    std::map<std::string, answer_function, std::less<>> answers;
    std::map<std::string, notification_handler, std::less<>> notifications;
    end_handler at_end;
    json_rpc_stats counts;
    std::int64_t last_id = 0;
    net_detail::parking* writer_idle = nullptr;
    std::list<net_detail::parking*> joining;
    bool closed = false;
    std::string why_closed;
};

}  // namespace reagent::inline v0
