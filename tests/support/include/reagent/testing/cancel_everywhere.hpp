#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/model/message.hpp>
#include <reagent/testing/manual_clock.hpp>

#include <boost/asio/cancellation_signal.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace reagent::inline v0::testing {

/// How one run of an operation went.
struct cancel_outcome {
    std::size_t cancelled_at = 0;  ///< handlers run before the signal; 0 for the run that is not cancelled
    bool signalled = false;        ///< false also when the operation ended before its turn
    std::exception_ptr failure;    ///< what the operation threw, null when it returned
};

/// A fresh world for one run of the operation under test: servers, clients, budgets, and the operation. Made and destroyed once per run.
class cancel_case {
public:
    virtual ~cancel_case() = default;
    /// The operation as a coroutine. Called once, started by `co_spawn` on the context and bound to a cancellation slot; keep results in the case.
    virtual awaitable<void> operation();
    /// Starts the operation, to be cancelled through `stop`, and tells its end to `done`, once; null is success. Override this one for an operation
    /// that takes a completion token; by default it is `operation` in a `co_spawn`.
    virtual void start(asio::io_context& context, asio::cancellation_slot stop, std::function<void(std::exception_ptr)> done);
    /// Called after the operation ended: drop idle connections, stop servers. Nothing may be left on the context afterwards.
    virtual void finish() {}
    /// What is wrong with what the operation left behind, or an empty text.
    virtual std::string verify(const cancel_outcome&) { return {}; }
    /// The clock to move on whenever nothing else can happen.
    virtual std::shared_ptr<manual_clock> clock() { return nullptr; }
};

class cancel_options {
public:
    /// Real time an operation may take, and take to end once cancelled.
    cancel_options& patience(std::chrono::milliseconds t) { return patience_ = t, *this; }
    /// Manual time a cancelled operation may use for its clean-up.
    cancel_options& cleanup(duration d) { return cleanup_ = d, *this; }
    /// A counter of live objects, compared before a run and after its world is destroyed.
    cancel_options& live(std::string name, std::function<long()> count)
    {
        counters_.emplace_back(std::move(name), std::move(count));
        return *this;
    }
    /// The run that is not cancelled may throw as well.
    cancel_options& may_fail() { return may_fail_ = true, *this; }
    /// The most handlers an operation may take.
    cancel_options& max_points(std::size_t n) { return max_points_ = n, *this; }
    /// The type of the signal. An operation that does not honour it (coroutines pass `terminal` alone unless they say otherwise) ends by itself.
    cancel_options& type(asio::cancellation_type t) { return type_ = t, *this; }
    /// An impatient host: so many more signals follow the first, one after each further handler, into the clean-up. 0 is the default.
    cancel_options& again(std::size_t times) { return again_ = times, *this; }
    /// Real time without a ready handler after which the manual clock moves on. Without sockets nothing can come late, and zero is enough.
    cancel_options& quiet(std::chrono::milliseconds t) { return quiet_ = t, *this; }

    std::chrono::milliseconds patience_ = std::chrono::seconds(10);
    duration cleanup_ = std::chrono::seconds(10);
    std::vector<std::pair<std::string, std::function<long()>>> counters_;
    bool may_fail_ = false;
    std::size_t max_points_ = 20'000;
    asio::cancellation_type type_ = asio::cancellation_type::terminal;
    std::size_t again_ = 0;
    std::chrono::milliseconds quiet_ = std::chrono::milliseconds(10);
};

/// What `cancel_everywhere` found: true when every run held.
class cancel_report {
public:
    explicit operator bool() const noexcept { return failure.empty(); }
    std::size_t points = 0;                ///< handlers of the run that was not cancelled
    std::size_t runs = 0;                  ///< runs in all
    std::size_t aborted = 0;               ///< of the runs signalled in time: ended with a cancellation
    std::size_t returned = 0;              ///< of them: ended without an error, as what keeps its result when cancelled does
    std::optional<std::size_t> failed_at;  ///< the first n that failed; 0 is the run that was not cancelled
    std::string failure;
    friend std::ostream& operator<<(std::ostream& out, const cancel_report& r);
};

using cancel_factory = std::function<std::unique_ptr<cancel_case>(asio::io_context&)>;

/// Runs the operation once to its end, one handler at a time, counting them: every resumption of the operation is in one. Then runs it again for
/// n = 1, 2, … in a fresh world, emitting the signal after n handlers, until a run ends before its signal. After each run it checks: the operation
/// completed exactly once and within the patience; after `finish()` the context runs out of work by itself; no file descriptor is
/// open that was not before; `verify` has no complaint; and with the world destroyed, descriptors, live counters and signal
/// dispositions are as before. Stops at the first failure. A world that does not end is abandoned, not destroyed.
cancel_report cancel_everywhere(const cancel_factory& make, const cancel_options& options = cancel_options());

/// For an operation that needs no world of its own.
cancel_report cancel_everywhere(const std::function<awaitable<void>(asio::io_context&)>& operation, const cancel_options& options = cancel_options());

/// For `verify`: the complaints of `check_transcript` in one line, empty when the transcript is valid.
inline std::string transcript_complaints(std::span<const message_ptr> messages)
{
    std::string out;
    for (const std::string& complaint : check_transcript(messages)) out += (out.empty() ? "transcript: " : "; ") + complaint;
    return out;
}

}  // namespace reagent::inline v0::testing
