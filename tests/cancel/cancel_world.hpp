/// What the cancellation tests share: a provider's server over plain TCP or TLS, a client of it, and what must hold afterwards.
#pragma once
#include "tls_server.hpp"

#include <reagent/agent/agent.hpp>
#include <reagent/base/error.hpp>
#include <reagent/governance/budget.hpp>
#include <reagent/model/pricing.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/providers/openai.hpp>
#include <reagent/testing/byte_server.hpp>
#include <reagent/testing/cancel_everywhere.hpp>
#include <reagent/testing/http_text.hpp>
#include <reagent/testing/manual_clock.hpp>
#include <reagent/testing/run.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cancel_tests {

using namespace reagent;
using namespace std::chrono_literals;
namespace rt = reagent::testing;  // `testing` alone is GoogleTest's

/// Signals that an impatient host adds to its first.
constexpr std::size_t impatience = 25;

/// What nobody of ours may leave behind in a budget and all above it.
inline std::string complaints_of(const budget& b)
{
    std::string out;
    for (budget n = b; n; n = n.parent()) {
        const budget_state s = n.state();
        if (s.reserved.cost != usd() || s.reserved.tokens != 0)
            out += "still reserved in " + n.name() + ": $" + s.reserved.cost.to_string() + ", " + std::to_string(s.reserved.tokens) + " tokens; ";
        if (s.waiting != 0) out += std::to_string(s.waiting) + " still waiting for " + n.name() + "; ";
        if (s.overrun) out += n.name() + " is overrun; ";
    }
    return out;
}

/// An operation without a result of its own ends by itself or with a cancellation.
inline std::string complaints_of(const rt::cancel_outcome& o)
{
    if (o.failure && !is_cancellation(o.failure)) return "failed with " + message_of(o.failure) + "; ";
    return {};
}

inline awaitable<void> hops(int n)
{
    for (int i = 0; i < n; ++i) co_await asio::post(asio::use_awaitable);
}

enum class wire { plain, tls };

/// Answers the requests of a connection in order, the last answer repeated: on the client's context over plain TCP, on a thread of its own over TLS.
class answering_server {
public:
    answering_server(asio::io_context& io, wire w, std::vector<std::string> answers) : wire_(w)
    {
        if (w == wire::tls) {
            tls_ = std::make_unique<net_tests::tls_server>("good", std::move(answers), net_tests::tls_end::keep);
            return;
        }
        rt::byte_script script;
        for (const std::string& a : answers) {
            script.request();
            // In pieces, so that the client meets bodies that are not whole.
            const std::size_t half = a.size() / 2;
            script.send(a.substr(0, half)).send(a.substr(half));
        }
        for (int spare = 0; spare < 4; ++spare) script.request().send(answers.back());
        plain_ = std::make_unique<rt::byte_server>(io.get_executor(), std::move(script));
    }
    std::string base_url() const
    {
        const std::uint16_t port = tls_ ? tls_->port() : plain_->port();
        return (tls_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port) + "/v1";
    }
    http_client_options client_options(clock_ptr clock) const
    {
        http_client_options o;
        o.clock = std::move(clock);
        if (wire_ == wire::tls) {
            o.tls.ca_file = net_tests::certificates::shared().pem("root");
            o.tls.system_store = false;
        }
        return o;
    }
    void stop()
    {
        if (plain_) plain_->stop();
    }

private:
    wire wire_;
    std::unique_ptr<rt::byte_server> plain_;
    std::unique_ptr<net_tests::tls_server> tls_;
};

/// A provider on a client on a server; what a case holds for its run. Time is manual, but for TLS: its server answers when its thread comes to it, and a
/// clock that moves on when nothing is ready would move too early.
class provider_world {
public:
    provider_world(asio::io_context& io, wire w, std::vector<std::string> answers)
        : manual(w == wire::plain ? std::make_shared<rt::manual_clock>() : nullptr),
          clock(manual ? clock_ptr(manual) : reagent::clock::system()),
          server(io, w, std::move(answers)),
          http(io.get_executor(), server.client_options(clock))
    {
        model = openai_chat(http, openai_options("m").base_url(server.base_url()).max_tokens(std::uint64_t(50)));
    }
    /// After the operation: only idle connections may be left; they and the server go.
    void finish()
    {
        const http_client_stats s = http.stats();
        if (s.open != s.idle) trouble += std::to_string(s.open - s.idle) + " connections still in use; ";
        if (s.waiting != 0) trouble += std::to_string(s.waiting) + " still waiting for a connection; ";
        if (manual && manual->armed() != 0) trouble += std::to_string(manual->armed()) + " timers still armed; ";
        idle = s.idle;
        http.close_idle();
        server.stop();
    }
    std::shared_ptr<rt::manual_clock> manual;
    clock_ptr clock;
    answering_server server;
    http_client http;
    provider_ptr model;
    std::size_t idle = 0;  ///< connections kept when the operation ended
    std::string trouble;
};

/// Answers in the OpenAI wire that ask for tools, as one body and as a stream.
inline std::string calls_answer(const std::vector<std::string>& tools)
{
    std::string calls;
    for (std::size_t i = 0; i < tools.size(); ++i)
        calls +=
            (i ? "," : "") + (R"({"id":"call_)" + std::to_string(i)) + R"(","type":"function","function":{"name":")" + tools[i] + R"(","arguments":"{}"}})";
    return rt::http_response(200,
                             R"({"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"working","tool_calls":[)" + calls +
                                 R"(]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5}})");
}

inline std::string calls_stream(const std::vector<std::string>& tools)
{
    std::vector<std::string> events = {R"({"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"working"},"finish_reason":null}]})"};
    for (std::size_t i = 0; i < tools.size(); ++i)
        events.push_back(R"({"id":"c","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":)" + std::to_string(i) + R"(,"id":"call_)" +
                         std::to_string(i) + R"(","type":"function","function":{"name":")" + tools[i] + R"(","arguments":"{}"}}]},"finish_reason":null}]})");
    events.push_back(R"({"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]})");
    events.push_back(R"({"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}})");
    events.push_back("[DONE]");
    return rt::sse_response(events);
}

}  // namespace cancel_tests
