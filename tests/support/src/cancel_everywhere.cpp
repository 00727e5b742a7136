#include <reagent/base/error.hpp>
#include <reagent/testing/cancel_everywhere.hpp>
#include <reagent/testing/fd_snapshot.hpp>
#include <reagent/testing/signal_snapshot.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <ostream>
#include <stdexcept>

#include <poll.h>

namespace reagent::inline v0::testing {

namespace {

using real_clock = std::chrono::steady_clock;

/// The world of one run; the context is declared first, so that it dies last.
struct world {
    asio::io_context context{1};
    std::unique_ptr<cancel_case> subject;
    asio::cancellation_signal stop;
    std::size_t completions = 0;
    cancel_outcome outcome;
};

/// Reachable for ever: a world whose operation cannot be ended has frames that refer to it, so destroying it would be the next bug.
void abandon(std::unique_ptr<world> w)
{
    static auto* const abandoned = new std::vector<world*>();
    abandoned->push_back(w.release());
}

/// Runs one handler; when none is ready and none becomes ready, moves the clock on within `manual`. False when nothing can happen before `end`.
bool step(world& w, const cancel_options& options, real_clock::time_point end, duration& manual)
{
    if (w.context.poll_one() != 0) return true;
    const std::shared_ptr<manual_clock> clock = w.subject->clock();
    const bool movable = clock != nullptr && clock->armed() > 0 && clock->next() - clock->now() <= manual;
    const auto until = movable ? std::min(end, real_clock::now() + options.quiet_) : end;
    if (w.context.run_one_until(until) != 0) return true;
    if (!movable) return false;
    const std::optional<duration> moved = clock->advance_to_next();
    if (moved) manual -= *moved;
    return moved.has_value() && real_clock::now() < end;
}

/// Runs the operation to its end, cancelling after `at` handlers (0: never). Tells how many handlers it took. Itself a handler of the context that
/// polls it from inside: so a signal is emitted where real ones are, and takes effect at once instead of queueing behind ready handlers.
std::size_t play(world& w, std::size_t at, const cancel_options& options, std::string& failure)
{
    w.subject->start(w.context, w.stop.slot(), [&w](std::exception_ptr e) {
        ++w.completions;
        w.outcome.failure = std::move(e);
    });
    w.outcome.cancelled_at = at;
    std::size_t handlers = 1;  // inside the context it starts at once, so that its first step is done
    auto end = real_clock::now() + options.patience_;
    duration manual = duration::max();
    std::size_t again = options.again_;
    while (w.completions == 0) {
        // The first, and what an impatient host adds.
        const bool first = at != 0 && handlers == at && !w.outcome.signalled;
        if (first) {
            w.outcome.signalled = true;
            end = real_clock::now() + options.patience_;
            manual = options.cleanup_;
        }
        if (first || (w.outcome.signalled && again > 0)) {
            if (!first) --again;
            w.stop.emit(options.type_);
            if (w.completions != 0) break;
        }
        if (!step(w, options, end, manual)) {
            failure = w.outcome.signalled ? "the cancelled operation did not end" : "the operation did not end";
            return handlers;
        }
        ++handlers;
        if (handlers > options.max_points_) {
            failure = "the operation takes more than " + std::to_string(options.max_points_) + " handlers";
            return handlers;
        }
    }
    return handlers;
}

/// The context must run out of work without help.
bool runs_out(world& w, const cancel_options& options)
{
    const auto end = real_clock::now() + options.patience_;
    while (real_clock::now() < end) {
        if (w.context.stopped()) w.context.restart();
        w.context.run_one_until(end);
        if (w.context.stopped()) return true;
    }
    return false;
}

/// A server on its own thread closes its ends a moment later, so a difference counts only when it stays.
template <class F>
std::string lasting(F difference, std::chrono::milliseconds limit)
{
    const auto end = real_clock::now() + std::min(limit, std::chrono::milliseconds(2000));
    for (;;) {
        std::string left = difference();
        if (left.empty() || real_clock::now() >= end) return left;
        ::poll(nullptr, 0, 1);
    }
}

std::string check_end(world& w, const cancel_options& options)
{
    if (w.completions != 1) return "the operation completed " + std::to_string(w.completions) + " times";
    if (!w.outcome.signalled && w.outcome.failure && !options.may_fail_) {
        return "the operation failed without being cancelled: " + message_of(w.outcome.failure);
    }
    return w.subject->verify(w.outcome);
}

/// One run in a fresh world; its handlers.
std::size_t run_once(const cancel_factory& make, std::size_t at, const cancel_options& options, cancel_outcome& outcome, std::string& failure)
{
    const signal_snapshot signals = signal_snapshot::take();
    const fd_snapshot outside = fd_snapshot::take();
    std::vector<long> live;
    for (const auto& [name, count] : options.counters_) live.push_back(count());

    auto w = std::make_unique<world>();
    // The context opens its own descriptors with the first I/O object, not with the operation's.
    static_cast<void>(asio::steady_timer(w->context));
    w->subject = make(w->context);
    w->context.poll();
    w->context.restart();
    const fd_snapshot inside = fd_snapshot::take();

    std::size_t handlers = 0;
    asio::post(w->context, [&] { handlers = play(*w, at, options, failure); });
    {
        // Asio counts the work that a handler adds when that handler returns. Polled from inside `play`, the context finishes such work before, and
        // would stop when its count falls to nothing.
        constexpr std::size_t more_than_is_added = 4096;
        const std::vector<asio::executor_work_guard<asio::io_context::executor_type>> reserve(more_than_is_added, asio::make_work_guard(w->context));
        w->context.run_one();
    }
    outcome = w->outcome;
    if (!failure.empty()) {
        abandon(std::move(w));
        return handlers;
    }
    w->subject->finish();
    if (!runs_out(*w, options)) {
        failure = "the context did not run out of work after the operation: something of it is still waiting";
        abandon(std::move(w));
        return handlers;
    }
    failure = check_end(*w, options);
    if (failure.empty()) {
        const std::string more = lasting([&] { return inside.added(fd_snapshot::take()); }, options.patience_);
        if (!more.empty()) failure = "left open by the operation: " + more;
    }
    w.reset();
    if (!failure.empty()) return handlers;

    const std::string fds = lasting([&] { return outside.difference(fd_snapshot::take()); }, options.patience_);
    if (!fds.empty()) failure = "file descriptors differ after the run: " + fds;
    for (std::size_t i = 0; failure.empty() && i < live.size(); ++i) {
        const auto& [name, count] = options.counters_[i];
        const long now = count();
        if (now != live[i]) failure = "live " + name + ": " + std::to_string(live[i]) + " before, " + std::to_string(now) + " after";
    }
    if (failure.empty()) failure = signals.difference(signal_snapshot::take());
    return handlers;
}

class plain_case final : public cancel_case {
public:
    plain_case(const std::function<awaitable<void>(asio::io_context&)>& operation, asio::io_context& context) : operation_(operation), context_(context) {}
    awaitable<void> operation() override { return operation_(context_); }

private:
    std::function<awaitable<void>(asio::io_context&)> operation_;
    asio::io_context& context_;
};

}  // namespace

awaitable<void> cancel_case::operation()
{
    throw std::logic_error("a cancel_case overrides operation or start");
}

void cancel_case::start(asio::io_context& context, asio::cancellation_slot stop, std::function<void(std::exception_ptr)> done)
{
    asio::co_spawn(context, operation(), asio::bind_cancellation_slot(stop, std::move(done)));
}

cancel_report cancel_everywhere(const cancel_factory& make, const cancel_options& options)
{
    cancel_report report;
    cancel_outcome outcome;
    report.points = run_once(make, 0, options, outcome, report.failure);
    report.runs = 1;
    if (!report.failure.empty()) report.failed_at = 0;
    for (std::size_t at = 1; report.failure.empty(); ++at) {
        run_once(make, at, options, outcome, report.failure);
        ++report.runs;
        if (!report.failure.empty()) report.failed_at = at;
        // Timing of the kernel moves the count a little; the end is where the operation is first, not a number from before.
        if (!outcome.signalled) break;
        if (!outcome.failure) ++report.returned;
        else if (is_cancellation(outcome.failure)) ++report.aborted;
    }
    return report;
}

cancel_report cancel_everywhere(const std::function<awaitable<void>(asio::io_context&)>& operation, const cancel_options& options)
{
    return cancel_everywhere([&operation](asio::io_context& context) { return std::make_unique<plain_case>(operation, context); }, options);
}

std::ostream& operator<<(std::ostream& out, const cancel_report& r)
{
    if (r) return out << "held at " << r.points << " points in " << r.runs << " runs, " << r.aborted << " aborted, " << r.returned << " returned";
    if (r.failed_at == 0u) return out << "not cancelled: " << r.failure;
    return out << "cancelled after handler " << *r.failed_at << ": " << r.failure;
}

}  // namespace reagent::inline v0::testing
