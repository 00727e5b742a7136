// Our WebSocket client for the interop tests: does what its arguments say, one step after the other, and prints a line of JSON for each that has an outcome.
//
//     interop_websocket_client URL [unix=PATH] [protocol=NAME…] [max=BYTES] STEP…
//
// Steps: `text=WORDS`, `texts=N` (N bytes), `binary=N`, `ping=WORDS`, `read`, `pongs`, `close=CODE,REASON`.
#include <reagent/base/json.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/net/websocket.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using reagent::awaitable;
using reagent::json;

void print(const json& line)
{
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
}

std::string pattern(std::size_t n, unsigned values)
{
    std::string bytes(n, '\0');
    for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<char>(values == 26 ? 'a' + i * 31 % 26 : i * 31 % 251);
    return bytes;
}

std::uint32_t sum_of(std::string_view bytes)
{
    std::uint32_t sum = 0;
    for (const char c : bytes) sum = sum * 31 + static_cast<unsigned char>(c);
    return sum;
}

json shown(const reagent::websocket_message& m)
{
    const bool text = m.kind == reagent::websocket_kind::text;
    json line = json::object().set("kind", text ? "text" : "binary").set("size", m.bytes.size()).set("sum", static_cast<std::uint64_t>(sum_of(m.bytes)));
    if (text && m.bytes.size() <= 100) line.set("text", m.bytes);
    return line;
}

class step {
public:
    explicit step(std::string_view word) : name(word.substr(0, word.find('='))), value(word.find('=') == word.npos ? "" : word.substr(word.find('=') + 1)) {}
    std::size_t size() const { return std::strtoull(value.c_str(), nullptr, 10); }
    std::string name, value;
};

awaitable<void> read_one(reagent::websocket& socket)
{
    reagent::websocket_message message;
    const bool more = co_await socket.read(message);
    if (more) print(shown(message));
    else print(json::object().set("closed", socket.close_code()).set("reason", socket.close_reason()));
}

awaitable<void> close_with(reagent::websocket& socket, unsigned code, std::string reason)
{
    const bool proper = co_await socket.close(code, std::move(reason));
    print(json::object().set("proper", proper));
}

awaitable<void> talk(reagent::http_client client, reagent::url to, reagent::websocket_options options, std::vector<step> steps)
{
    reagent::websocket socket = co_await reagent::websocket::connect(client, std::move(to), std::move(options));
    print(json::object().set("protocol", socket.protocol()));
    for (const step& s : steps) {
        if (s.name == "read") co_await read_one(socket);
        else if (s.name == "text") co_await socket.send_text(s.value);
        else if (s.name == "texts") co_await socket.send_text(pattern(s.size(), 26));
        else if (s.name == "binary") co_await socket.send_binary(pattern(s.size(), 251));
        else if (s.name == "ping") co_await socket.ping(s.value);
        else if (s.name == "pongs") print(json::object().set("pongs", socket.pongs()));
        else if (s.name == "close") co_await close_with(socket, static_cast<unsigned>(s.size()), s.value.substr(s.value.find(',') + 1));
        else throw reagent::config_error("there is no step " + s.name);
    }
}

}  // namespace

int main(int argc, char** argv)
try {
    if (argc < 2) {
        std::fprintf(stderr, "usage: interop_websocket_client URL [unix=PATH] [protocol=NAME…] [max=BYTES] STEP…\n");
        return 2;
    }
    boost::asio::io_context context(1);
    reagent::websocket_options options;
    std::optional<reagent::http_route> route;
    std::vector<step> steps;
    for (int i = 2; i < argc; ++i) {
        step s(argv[i]);
        if (s.name == "unix") route = reagent::http_route::unix_socket(s.value);
        else if (s.name == "max") options.message_max = s.size();
        else if (s.name == "protocol") options.protocols.push_back(s.value);
        else steps.push_back(std::move(s));
    }
    if (route) options.route = &*route;
    std::exception_ptr failure;
    awaitable<void> work = talk(reagent::http_client(context.get_executor()), reagent::websocket_url(argv[1]), options, std::move(steps));
    boost::asio::co_spawn(context, std::move(work), [&failure](std::exception_ptr f) { failure = f; });
    context.run();
    if (failure) std::rethrow_exception(failure);
    return 0;
} catch (...) {
    print(json::object().set("error", reagent::message_of(std::current_exception())));
    return 1;
}
