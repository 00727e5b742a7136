/// The whole of what public headers take from Asio and Boost.System. Streams, sockets and TLS never appear in a header.
#pragma once
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

namespace reagent::inline v0 {
namespace asio = boost::asio;
using boost::asio::any_io_executor;
using boost::asio::awaitable;
using boost::system::error_code;
template <class T>
using result = boost::system::result<T>;
}  // namespace reagent::inline v0
