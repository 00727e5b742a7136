// An HTTP server inside a program of yours: routes, a stream that its reader holds back, limits, TLS, and a drain that lets answers end.
//
//     server                         answers two requests of its own and stops
//     server PORT [CERT.pem KEY.pem] serves until SIGINT or SIGTERM, over TLS with a certificate
#include <reagent/net/http_client.hpp>
#include <reagent/net/http_server.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <iostream>
#include <memory>
#include <string>

namespace asio = boost::asio;

namespace {

asio::awaitable<void> count_to_three(reagent::server_request, reagent::http_responder out)
{
    out.begin(200, "text/event-stream");
    for (int i = 1; i <= 3; ++i) {
        std::string event = "data: " + std::to_string(i) + "\n\n";
        co_await out.write_some(std::move(event));  // waits while the reader is slow, throws when it has gone
    }
    out.end();
}

std::unique_ptr<reagent::http_server> make_server(asio::any_io_executor ex, std::uint16_t port, const char* certificate, const char* key)
{
    reagent::http_server_options options;
    options.port = port;
    options.limits.max_body = 1024 * 1024;
    options.limits.peer_rate = 100;
    if (certificate) {
        options.tls.emplace();
        options.tls->certificate_file = certificate;  // PEM: the server's, then its intermediates
        options.tls->key_file = key;
    }
    auto server = std::make_unique<reagent::http_server>(ex, options);
    server->route("GET", "/greet/{name}", [](reagent::server_request&& request, reagent::http_responder out) {
        out.send(200, "text/plain", "Hello, " + std::string(request.parameter("name")) + ".\n");
    });
    server->route_awaitable("GET", "/count", &count_to_three);
    return server;
}

// Lets the answers under way end, ten seconds at most, and waits until no handler is left.
asio::awaitable<void> stop_gently(reagent::http_server& server)
{
    const bool all_answered = co_await server.drain(std::chrono::seconds(10));
    if (!all_answered) std::cerr << "some answers were cut\n";
    co_await server.close();
}

asio::awaitable<void> visit(reagent::http_server& server)
{
    const asio::any_io_executor ex = co_await asio::this_coro::executor;
    reagent::http_client client(ex);
    for (const std::string path : {"/greet/Ada", "/count"}) {
        reagent::http_request request("GET", reagent::url::parse_or_throw(server.origin() + path, "url"));
        reagent::http_exchange answer = co_await client.open(std::move(request));
        for (;;) {
            const std::span<const char> bytes = co_await answer.read_some();
            if (bytes.empty()) break;
            std::cout.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        }
    }
    co_await stop_gently(server);
}

void rethrow(std::exception_ptr failure)
{
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

int main(int argc, char** argv)
{
    try {
        asio::io_context context(1);
        const auto port = static_cast<std::uint16_t>(argc > 1 ? std::stoi(argv[1]) : 0);
        const auto server = make_server(context.get_executor(), port, argc > 3 ? argv[2] : nullptr, argc > 3 ? argv[3] : nullptr);
        asio::signal_set stop_signals(context);
        if (argc > 1) {
            stop_signals.add(SIGINT);
            stop_signals.add(SIGTERM);
            stop_signals.async_wait([&](const boost::system::error_code&, int) { asio::co_spawn(context, stop_gently(*server), &rethrow); });
            std::cout << "listening on " << server->origin() << std::endl;
        } else {
            asio::co_spawn(context, visit(*server), &rethrow);
        }
        context.run();
        std::cout << server->stats().requests << " requests\n";
        return 0;
    } catch (const std::exception& e) {
        std::cerr << "server: " << e.what() << "\n";
        return 1;
    }
}
