// The server that bench/server_floor puts beside nginx: answers every request with the same kilobyte. At SIGTERM it prints the CPU time a request took.
//
//     server_floor_server --port P
#include "bench_common.hpp"

#include <reagent/net/http_server.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <exception>

int main(int argc, char** argv)
{
    const bench::client_flags flags(argc, argv);
    try {
        boost::asio::io_context context(1);
        reagent::http_server_options options;
        options.port = static_cast<std::uint16_t>(flags.port);
        reagent::http_server server(context.get_executor(), options);
        const std::string body(1024, 'x');
        server.route("GET", "/index.html", [&body](reagent::server_request&&, reagent::http_responder out) { out.send(200, "text/html", body); });
        boost::asio::signal_set stop_signals(context, SIGINT, SIGTERM);
        stop_signals.async_wait([&server](boost::system::error_code, int) { server.stop(); });
        context.run();
        const auto requests = server.stats().requests;
        std::fprintf(stderr, "server: %llu requests, %.2f us of CPU each\n", static_cast<unsigned long long>(requests),
                     requests ? bench::cpu_time_us() / static_cast<double>(requests) : 0.0);
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "server_floor_server: %s\n", e.what());
        return 1;
    }
}
