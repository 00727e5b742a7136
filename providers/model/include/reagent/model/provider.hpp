#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/model/event.hpp>
#include <reagent/model/generate.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// One model call under way, read batch by batch. Destroying it early closes its connection. One owner, one executor.
class model_call {
public:
    virtual ~model_call() = default;
    /// Clears `batch`, then waits for the next events and puts them there. False: the call has ended and `take_result` holds; the batch may
    /// still carry the last events. Events decoded before a failure are delivered first, the read after them throws. Throws `provider_error`, `timeout_error`, `validation_error`, `halt_error`.
    /// Cancellation: terminal; the connection is closed before the throw. Not reading is back-pressure.
    virtual awaitable<bool> read(event_batch& batch) = 0;
    /// After `read` answered false. Moves the result out.
    virtual generate_result take_result() = 0;
    /// Text decoded so far, for `partialText` of a call that does not complete.
    virtual std::string partial_text() const { return {}; }
};
using model_call_ptr = std::unique_ptr<model_call>;

/// A source of model calls. Override `start` (streaming) or only `generate`: each has a default made from the other. Calls of one provider may
/// run at once on its executor. Immutable to its users; a handle `provider_ptr` keeps it alive.
class provider : public std::enable_shared_from_this<provider> {
public:
    virtual ~provider() = default;
    virtual std::string_view name() const noexcept { return "custom"; }
    /// The configured model id, empty when there is none.
    virtual std::string_view model() const noexcept { return {}; }
    /// Most answer tokens of a call that sets no `max_tokens`, as this provider is configured; empty when it adds no bound of its own. A wrapper
    /// answers for what it wraps.
    virtual std::optional<std::uint64_t> max_output() const noexcept { return {}; }
    /// Whether every attempt passes the request's `attempt_gate`. When false the agent admits once per call.
    virtual bool admits_attempts() const noexcept { return false; }
    /// Starts a call; nothing is sent before the first `read`. Throws `validation_error` for what is wrong before any I/O.
    virtual model_call_ptr start(generate_request request);
    /// One call to its end. Cancellation: terminal.
    virtual awaitable<generate_result> generate(generate_request request);

    /// `generate` for any completion token, signature `void(error_code, generate_result)`.
    template <class Token = asio::use_awaitable_t<>>
    auto async_generate(any_io_executor ex, generate_request request, Token&& token = {})
    {
        return asio::async_initiate<Token, void(error_code, generate_result)>(
            [](auto handler, std::shared_ptr<provider> self, any_io_executor where, generate_request r) {
                start_generate(std::move(self), std::move(where), std::move(r), std::move(handler));
            },
            token, shared_from_this(), std::move(ex), std::move(request));
    }

private:
    static void start_generate(std::shared_ptr<provider> self, any_io_executor where, generate_request request,
                               asio::any_completion_handler<void(error_code, generate_result)> handler);
};
using provider_ptr = std::shared_ptr<provider>;

}  // namespace reagent::inline v0
