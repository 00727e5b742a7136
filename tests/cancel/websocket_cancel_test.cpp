// A WebSocket from the dial to the goodbye, cancelled after every handler.
#include "cancel_world.hpp"

#include <reagent/net/websocket.hpp>

#include <gtest/gtest.h>

namespace {
namespace websocket_cancel_test {

using namespace cancel_tests;

/// The answer to a key of zeros.
const std::string consent =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n\r\n";

awaitable<void> talk(http_client client, url to, std::string* seen)
{
    websocket_options o;
    o.random = [] { return std::uint64_t(0); };
    websocket ws = co_await websocket::connect(client, to, o);
    co_await ws.send_text("first");
    websocket_message m;
    const bool more = co_await ws.read(m);
    if (more) *seen += m.bytes;
    co_await ws.ping();
    co_await ws.send_binary(std::string(100'000, 'b'));
    const bool proper = co_await ws.close();
    *seen += proper ? " proper" : " alone";
}

class websocket_case final : public rt::cancel_case {
public:
    websocket_case(asio::io_context& io, const rt::byte_script& script, std::string expected)
        : server_(io.get_executor(), script), http_(io.get_executor(), options()), expected_(std::move(expected))
    {}
    awaitable<void> operation() override { return talk(http_, websocket_url("ws" + server_.origin().substr(4) + "/"), &got_); }
    void finish() override
    {
        if (clock_->armed() != 0) trouble_ += "a timer is left; ";
        server_.stop();
    }
    std::shared_ptr<rt::manual_clock> clock() override { return clock_; }
    std::string verify(const rt::cancel_outcome& o) override
    {
        if (!o.failure && got_ != expected_) trouble_ += "got " + got_ + "; ";
        if (o.failure && expected_.empty() && code_of(o.failure) == errc::idle_timeout) return trouble_;
        return trouble_ + complaints_of(o);
    }

private:
    http_client_options options()
    {
        http_client_options o;
        o.clock = clock_;
        return o;
    }
    std::shared_ptr<rt::manual_clock> clock_ = std::make_shared<rt::manual_clock>();
    rt::byte_server server_;
    http_client http_;
    std::string expected_, got_, trouble_;
};

void holds(const rt::byte_script& script, const std::string& expected)
{
    for (const bool repeatedly : {false, true}) {
        rt::cancel_options options;
        options.may_fail();
        if (repeatedly) options.again(impatience);
        const rt::cancel_report r =
            rt::cancel_everywhere([&](asio::io_context& io) { return std::make_unique<websocket_case>(io, script, expected); }, options);
        EXPECT_TRUE(r) << r;
        EXPECT_GT(r.aborted, 10u) << r;
    }
}

TEST(CancelWebSocket, FromTheDialToTheGoodbye)
{
    const std::string message = "\x81\x02hi", goodbye = std::string("\x88\x02\x03\xe8", 4);
    holds(rt::byte_script().request().trickle(consent.substr(0, 3)).send(consent.substr(3)).send("\x89\x01p").trickle(message).send(goodbye), "hi proper");
}

TEST(CancelWebSocket, APeerThatIsSilent)
{
    holds(rt::byte_script().request().send(consent).stall(), "");
}

}  // namespace websocket_cancel_test
}  // namespace
