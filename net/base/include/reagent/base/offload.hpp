#pragma once
#include <reagent/base/asio.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <type_traits>

namespace reagent::inline v0 {

template <class F>
awaitable<std::invoke_result_t<F&>> run_blocking(F& work)
{
    co_return work();
}

/// Runs blocking `work()` on `pool` and comes back to the caller's executor with its value or exception. Not cancellable once it runs.
/// Lifetimes: `work` is taken by reference and must live until the await ends.
template <class F>
awaitable<std::invoke_result_t<F&>> offload(asio::thread_pool& pool, F& work)
{
    return asio::co_spawn(pool.get_executor(), run_blocking(work), asio::use_awaitable);
}

}  // namespace reagent::inline v0
