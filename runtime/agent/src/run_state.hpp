#pragma once
#include "agent_core.hpp"
#include "waiter.hpp"

#include <reagent/agent/run_request.hpp>
#include <reagent/agent/run_result.hpp>
#include <reagent/model/event.hpp>

#include <boost/asio/cancellation_signal.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace reagent::inline v0::agent_detail {

class chat_state;

/// What the handle of a run and its driver share, and the hand-over of batches between them. The driver holds a strong reference as long as it
/// lives; the queue between the two is one batch.
class run_state : public std::enable_shared_from_this<run_state> {
public:
    static std::shared_ptr<run_state> make(std::shared_ptr<const agent_core> core, any_io_executor ex, run_request request,
                                           std::shared_ptr<chat_state> chat = {});
    ~run_state();

    /// Nobody will read: events are not made and the driver never waits for a reader.
    void unread() noexcept { reading_ = false; }
    static awaitable<bool> read(std::shared_ptr<run_state> self, event_batch* batch);
    /// The whole run without a handle: its events go to the request's sink. Throws what kept it from starting.
    static awaitable<void> to_end(std::shared_ptr<run_state> self);
    /// Starts when needed and waits for the end. Cancellation: cancels the run and still waits.
    static awaitable<void> join(std::shared_ptr<run_state> self);
    void cancel() noexcept;
    void stop() noexcept;
    /// Cancelled before anything of it began: the result says so.
    void end_unstarted();
    /// The handle is gone.
    void abandon() noexcept;
    bool finished() const noexcept { return phase_ == phase::finished; }
    bool started() const noexcept { return phase_ != phase::idle; }
    /// What kept the run from starting; null when it started.
    const std::exception_ptr& failure() const noexcept { return failure_; }

    // The driver's side.
    bool wants_events() const noexcept { return reading_; }
    /// Where the run's own events go: the reader's batch, or the spare one while nobody reads.
    event_batch& out() noexcept { return reader_ != nullptr ? *reader_ : spare_; }
    /// Hands the reader what its batch holds. Cheap when there is nothing.
    void deliver();
    /// An empty batch for the events of a model call: the reader's own. Waits for a reader, which is the run's back-pressure.
    awaitable<event_batch*> model_batch();
    bool cancelled() const noexcept { return cancelled_; }
    bool stop_requested() const noexcept { return stop_requested_; }

    const std::shared_ptr<const agent_core> core;
    const any_io_executor executor;
    run_request request;
    std::string run_id;
    std::shared_ptr<chat_state> chat;
    run_result result;

private:
    enum class phase : std::uint8_t { idle, started, finished };
    class driver_done;

    run_state(std::shared_ptr<const agent_core> c, any_io_executor ex, run_request r, std::shared_ptr<chat_state> ch);
    void push(const std::function<void(const event_batch&)>& sink, const event_batch& batch);
    void launch();
    void on_done(std::exception_ptr failure);
    void on_lost() noexcept;
    void interrupt() noexcept;

    phase phase_ = phase::idle;
    bool reading_ = true, ready_ = false, interrupted_ = false, cancelled_ = false, stop_requested_ = false;
    event_batch* reader_ = nullptr;
    event_batch spare_, scratch_;
    std::shared_ptr<waiter> reader_cv_, driver_cv_;
    asio::cancellation_signal signal_;
    std::exception_ptr failure_;
};

/// Hands `work` on; the sentence of its failure goes to `log`, for callers who only get a code.
awaitable<run_result> log_failure(log_sink log, awaitable<run_result> work);
/// The result of a run that never began (run_driver.cpp).
void fill_unstarted(run_state& state);
/// The driver: the whole of one run (run_driver.cpp).
awaitable<void> drive(std::shared_ptr<run_state> state);

}  // namespace reagent::inline v0::agent_detail
