/// How a coroutine of ours is started: isolated from the caller's cancellation state, or from any completion token.
#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/error.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>

#include <exception>
#include <type_traits>
#include <utility>

namespace reagent::inline v0 {

/// Runs `operation` as a coroutine thread of its own on the caller's executor, bound to the caller's cancellation slot. Inside it the
/// cancellation state may be reset (style.md §2.6.4) without touching the host's. Every public coroutine with clean-up goes through here.
template <class T>
awaitable<T> isolated(awaitable<T> operation)
{
    const any_io_executor ex = co_await asio::this_coro::executor;
    if constexpr (std::is_void_v<T>) {
        co_await asio::co_spawn(ex, std::move(operation), asio::use_awaitable);
    } else {
        T value = co_await asio::co_spawn(ex, std::move(operation), asio::use_awaitable);
        co_return value;
    }
}

extern template awaitable<void> isolated(awaitable<void>);  // every other unit would compile it again

/// Starts `operation` on `ex` for any completion handler `void(error_code, T)`, or `void(error_code)` when T is void: the handler's cancellation
/// slot cancels it, its associated executor gets the completion, which is never made inside the initiating function. An exception becomes its
/// error code (`code_of`) beside a default-constructed value. Called from source files with an erased handler: each handler type costs the
/// compilation of a coroutine.
template <class T, class Handler>
void start_for_handler(any_io_executor ex, awaitable<T> operation, Handler&& handler)
{
    auto slot = asio::get_associated_cancellation_slot(handler);
    auto where = asio::prefer(asio::get_associated_executor(handler, ex), asio::execution::outstanding_work.tracked);
    if constexpr (std::is_void_v<T>) {
        auto finish = [h = std::forward<Handler>(handler), where](std::exception_ptr failure) mutable {
            const boost::system::error_code ec = failure ? code_of(failure) : boost::system::error_code();
            asio::dispatch(where, [h = std::move(h), ec]() mutable { std::move(h)(ec); });
        };
        asio::co_spawn(ex, std::move(operation), asio::bind_cancellation_slot(slot, std::move(finish)));
    } else {
        auto finish = [h = std::forward<Handler>(handler), where](std::exception_ptr failure, T value) mutable {
            const boost::system::error_code ec = failure ? code_of(failure) : boost::system::error_code();
            asio::dispatch(where, [h = std::move(h), ec, v = std::move(value)]() mutable { std::move(h)(ec, std::move(v)); });
        };
        asio::co_spawn(ex, std::move(operation), asio::bind_cancellation_slot(slot, std::move(finish)));
    }
}

}  // namespace reagent::inline v0
