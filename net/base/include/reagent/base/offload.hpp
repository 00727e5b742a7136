#pragma once
#include <reagent/base/asio.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <functional>
#include <type_traits>

namespace reagent::inline v0 {

namespace base_detail {
// Erased: a coroutine frame that holds a local lambda's type draws a linkage warning from GCC.
template <class R>
awaitable<R> run_blocking(std::function<R()> work)
{
    co_return work();
}
}  // namespace base_detail

/// Runs blocking `work()` on `pool` and comes back to the caller's executor with its value or exception. Cancellation: none, it is waited for.
/// Lifetimes: `work` is taken by reference and must live until the await ends.
template <class F>
awaitable<std::invoke_result_t<F&>> offload(asio::thread_pool& pool, F& work)
{
    using value = std::invoke_result_t<F&>;
    // Without the caller's slot: Asio would post a pointer into it to the pool, where it may arrive when the caller has gone on.
    return asio::co_spawn(pool.get_executor(), base_detail::run_blocking<value>(std::ref(work)),
                          asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable));
}

}  // namespace reagent::inline v0
