#include "doctor_checks.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/version.hpp>
#include <reagent/builtins/invoke_case.hpp>
#include <reagent/model/model_table.hpp>
#include <reagent/net/http_client.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/version.hpp>

#include <ares.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/x509.h>
#include <zlib.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>

namespace reagent_app {
namespace {

namespace asio = boost::asio;
using reagent::json;

health good(std::string check, std::string detail)
{
    return health(std::move(check), health_verdict::ok, std::move(detail));
}
health poor(std::string check, std::string detail)
{
    return health(std::move(check), health_verdict::warn, std::move(detail));
}
health bad(std::string check, std::string detail)
{
    return health(std::move(check), health_verdict::fail, std::move(detail));
}

health versions()
{
    return good("versions",
                fmt::format("reagent {}, Boost {}.{}.{}, {}, c-ares {}, zlib {}, GCC {}", REAGENT_VERSION, BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000,
                            BOOST_VERSION % 100,
                            OpenSSL_version(OPENSSL_VERSION_STRING) ? fmt::format("OpenSSL {}", OpenSSL_version(OPENSSL_VERSION_STRING)) : "OpenSSL",
                            ares_version(nullptr), zlibVersion(), __VERSION__));
}

health files()
{
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return poor("files", "the limit of open files cannot be read");
    const std::string found = fmt::format("{} files may be open at once (hard limit {})", limit.rlim_cur, limit.rlim_max);
    if (limit.rlim_cur < 256) return bad("files", found + "; the demo needs more than 500: ulimit -n 4096");
    if (limit.rlim_cur < 1024) return poor("files", found + "; the demo needs more than 500: ulimit -n 4096");
    return good("files", found);
}

health time_zones()
{
    const json in = json::object().set("tool", "current_time").set("args", json::object().set("timezone", "Europe/London")).set("now", "2026-07-01T12:00:00Z");
    const json answer = reagent::invoke_case(in);
    if (answer["output"] == json("2026-07-01T13:00:00+01:00 (Wednesday, Europe/London)")) return good("tzdata", "time zones are there, links included");
    return bad("tzdata", "Europe/London cannot be read; install the package tzdata");
}

health certificates()
{
    const char* from_env = std::getenv(X509_get_default_cert_file_env());
    const std::string file = from_env && *from_env ? from_env : X509_get_default_cert_file();
    const char* directory_from_env = std::getenv(X509_get_default_cert_dir_env());
    const std::string directory = directory_from_env && *directory_from_env ? directory_from_env : X509_get_default_cert_dir();
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) return good("certificates", "trusted authorities in " + file);
    std::size_t count = 0;
    for (std::filesystem::directory_iterator it(directory, ignored), end; !ignored && it != end && count < 1000; it.increment(ignored)) ++count;
    if (count > 0) return good("certificates", fmt::format("{} trusted authorities in {}", count, directory));
    return bad("certificates",
               fmt::format("no trusted authorities in {} or {}, so https cannot be checked; install the package ca-certificates", file, directory));
}

health key()
{
    const char* value = std::getenv("OPENAI_API_KEY");
    if (value && *value) return good("key", "OPENAI_API_KEY is set");
    return poor("key", "OPENAI_API_KEY is not set; servers without keys work, api.openai.com does not");
}

health names()
{
    std::ifstream config("/etc/resolv.conf");
    std::string line;
    std::size_t servers = 0;
    while (std::getline(config, line))
        if (line.starts_with("nameserver")) ++servers;
    if (servers == 0) return poor("names", "/etc/resolv.conf names no name server; only literal addresses, localhost and /etc/hosts can work");
    return good("names", fmt::format("{} name server{} in /etc/resolv.conf", servers, servers == 1 ? "" : "s"));
}

health models()
{
    return good("models", fmt::format("{} models with prices of {}", reagent::model_table().size(), reagent::model_table_date()));
}

/// Answers one request on a listener of ours.
asio::awaitable<void> answer_one(asio::ip::tcp::acceptor& listener)
{
    asio::ip::tcp::socket peer = co_await listener.async_accept(asio::use_awaitable);
    std::string request;
    co_await asio::async_read_until(peer, asio::dynamic_buffer(request, 16384), "\r\n\r\n", asio::use_awaitable);
    const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    co_await asio::async_write(peer, asio::buffer(answer), asio::use_awaitable);
}

asio::awaitable<std::string> fetch(reagent::http_client& client, std::string address)
{
    reagent::http_request request("GET", reagent::url::parse_or_throw(address, "loopback"));
    request.limits.connect = std::chrono::seconds(2);
    request.limits.idle = std::chrono::seconds(2);
    reagent::http_exchange exchange = co_await client.open(std::move(request));
    std::string body;
    for (;;) {
        const std::span<const char> bytes = co_await exchange.read_some();
        if (bytes.empty()) break;
        body.append(bytes.data(), bytes.size());
    }
    co_return body;
}

/// Resolver, connection, request and answer over a real socket of this machine.
health loopback()
{
    try {
        asio::io_context io(1);
        asio::ip::tcp::acceptor listener(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
        reagent::http_client client(io.get_executor());
        std::string body;
        std::exception_ptr failure;
        asio::co_spawn(io, answer_one(listener), [](std::exception_ptr) {});
        asio::co_spawn(io, fetch(client, fmt::format("http://localhost:{}/", listener.local_endpoint().port())), [&](std::exception_ptr f, std::string text) {
            failure = f;
            body = std::move(text);
            listener.close();
            client.close_idle();
        });
        io.run();
        if (failure) return bad("loopback", "a request to this machine failed: " + reagent::message_of(failure));
        if (body != "hello") return bad("loopback", "a request to this machine was answered wrongly");
        return good("loopback", "a request over a socket of this machine was answered");
    } catch (const std::exception& e) {
        return bad("loopback", std::string("no socket on 127.0.0.1: ") + e.what());
    }
}

}  // namespace

std::string_view to_string(health_verdict v) noexcept
{
    switch (v) {
    case health_verdict::ok: return "ok";
    case health_verdict::warn: return "warn";
    case health_verdict::fail: return "fail";
    }
    return "";
}

std::vector<health> examine_system()
{
    return {versions(), files(), time_zones(), certificates(), key(), names(), models(), loopback()};
}

}  // namespace reagent_app
