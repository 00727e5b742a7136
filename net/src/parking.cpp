#include "parking.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace reagent::inline v0::net_detail {

awaitable<void> parking::wait()
{
    error_code ignored;
    if (!woken_) co_await woken_cv_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

void parking::wake()
{
    woken_ = true;
    woken_cv_.cancel();
}

}  // namespace reagent::inline v0::net_detail
