#include "ready_hub.hpp"
#include "socket_link.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace reagent {
namespace {
namespace ready_hub_test {

using net_detail::direction;
using net_detail::ready_handler;
using net_detail::ready_hub;
using net_detail::socket_link;
using net_detail::transport;

/// One end of a pair waits at the hub, the other is a plain descriptor.
class pair {
public:
    pair(asio::io_context& context, std::shared_ptr<ready_hub> hub)
    {
        int fds[2] = {-1, -1};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        auto own = std::make_unique<socket_link>(context.get_executor(), std::move(hub));
        EXPECT_FALSE(own->adopt(fds[0]));
        link = own.get();
        wire = net_detail::make_plain_transport(std::move(own));
        peer = fds[1];
    }
    ~pair() { hang_up(); }
    void say(std::string_view text) const { EXPECT_EQ(::write(peer, text.data(), text.size()), static_cast<ssize_t>(text.size())); }
    void hang_up()
    {
        if (peer >= 0) ::close(std::exchange(peer, -1));
    }
    void fill() const
    {
        const std::string much(1 << 16, 'x');
        while (wire->try_write(much, {}).status == net_detail::io_status::ok) {}
    }
    void empty() const
    {
        std::string much(1 << 16, ' ');
        while (::read(peer, much.data(), much.size()) > 0) {}
    }
    std::string hear(std::size_t n = 64) const
    {
        std::string text(n, ' ');
        const net_detail::io_result r = wire->try_read(text.data(), n);
        text.resize(r.bytes);
        return text;
    }

    std::unique_ptr<transport> wire;
    socket_link* link = nullptr;
    int peer = -1;
};

class world {
public:
    asio::io_context context{1};
    std::shared_ptr<ready_hub> hub = ready_hub::make(context.get_executor());
    pair make() { return pair(context, hub); }
    /// Notes what the wait led to.
    void wait(pair& p, direction d, std::string name)
    {
        p.wire->when_ready(d, ready_handler([this, name = std::move(name)](const error_code& ec) { log += name + (ec ? "! " : " "); }));
    }
    std::string run()
    {
        context.restart();
        context.run();
        return std::exchange(log, {});
    }
    std::string log;
};

class noted_task final : public net_detail::turn_task {
public:
    explicit noted_task(world& w) : world_(w) {}
    void at_turn_end() noexcept override { world_.log += "task "; }

private:
    world& world_;
};

TEST(ReadyHub, TellsReadingFromWriting)
{
    world w;
    pair p = w.make();
    w.wait(p, direction::write, "write");
    w.wait(p, direction::read, "read");
    p.say("x");
    EXPECT_EQ(w.run(), "read write ");
    EXPECT_EQ(p.hear(), "x");
    w.wait(p, direction::read, "read");
    EXPECT_EQ(w.context.poll(), 0U);
    p.say("y");
    EXPECT_EQ(w.run(), "read ");
}

TEST(ReadyHub, WhatWasNotReadToItsEndIsReadyStill)
{
    world w;
    pair p = w.make();
    p.say("abcd");
    w.wait(p, direction::read, "read");
    EXPECT_EQ(w.run(), "read ");
    EXPECT_EQ(p.hear(2), "ab");  // fills the buffer: there may be more
    w.wait(p, direction::read, "again");
    EXPECT_EQ(w.run(), "again ");
    EXPECT_EQ(p.hear(), "cd");
}

TEST(ReadyHub, AnEndIsTheEndForGood)
{
    world w;
    pair p = w.make();
    p.say("last");
    p.hang_up();
    for (int i = 0; i < 3; ++i) {
        w.wait(p, direction::read, "read");
        EXPECT_EQ(w.run(), "read ");
        EXPECT_EQ(p.hear(), i == 0 ? "last" : "");
    }
}

TEST(ReadyHub, WritingWaitsForRoom)
{
    world w;
    pair p = w.make();
    p.fill();
    w.wait(p, direction::write, "write");
    w.context.poll();
    p.say("x");  // reading has nothing to do with it
    w.context.poll();
    EXPECT_EQ(w.log, "");
    p.empty();
    EXPECT_EQ(w.run(), "write ");
}

TEST(ReadyHub, WaitsForEitherDirection)
{
    for (const bool by_reading : {true, false}) {
        world w;
        pair p = w.make();
        p.fill();
        error_code ec;
        bool told = false;
        asio::co_spawn(w.context, p.wire->ready_either(ec), [&](const std::exception_ptr&) { told = true; });
        w.context.poll();
        EXPECT_FALSE(told);
        if (by_reading) p.say("x");
        else p.empty();
        w.run();
        EXPECT_TRUE(told);
    }
}

TEST(ReadyHub, EverybodyReadyGoesOnBeforeTheTurnsTasks)
{
    world w;
    pair a = w.make(), b = w.make();
    noted_task task(w);
    a.wire->when_ready(direction::read, ready_handler([&](const error_code&) {
                           w.log += "a ";
                           a.hear();
                           EXPECT_TRUE(a.wire->at_turn_end(task));
                           w.wait(a, direction::read, "answer");
                           EXPECT_TRUE(a.link->quiet());
                       }));
    w.wait(b, direction::read, "b");
    a.say("1");
    b.say("2");
    w.context.run_for(std::chrono::milliseconds(0));
    while (w.log.find("task") == std::string::npos) w.context.poll();
    EXPECT_EQ(w.log, "a b task ");
    EXPECT_FALSE(a.link->quiet());  // only inside a turn is that known
    w.log.clear();
    a.say("3");
    EXPECT_EQ(w.run(), "answer ");
}

TEST(ReadyHub, ATaskWithoutItsWaitIsNotRun)
{
    world w;
    pair p = w.make();
    noted_task task(w);
    p.wire->at_turn_end(task);
    w.wait(p, direction::read, "read");
    p.wire->cancel();
    EXPECT_EQ(w.run(), "read! ");
}

TEST(ReadyHub, ATaskOutsideATurnRunsInTheNext)
{
    world w;
    pair p = w.make();
    noted_task task(w);
    p.wire->at_turn_end(task);
    EXPECT_EQ(w.log, "");
    EXPECT_EQ(w.run(), "task ");
}

TEST(ReadyHub, CancellationEndsOneWait)
{
    world w;
    pair p = w.make();
    asio::cancellation_signal stop;
    p.wire->when_ready(direction::read, ready_handler(asio::bind_cancellation_slot(stop.slot(), [&](const error_code& ec) {
                           w.log += ec == asio::error::operation_aborted ? "stopped " : "? ";
                       })));
    stop.emit(asio::cancellation_type::none);
    w.context.poll();
    EXPECT_EQ(w.log, "");
    stop.emit(asio::cancellation_type::terminal);
    EXPECT_EQ(w.log, "");  // never from inside the signal
    EXPECT_EQ(w.run(), "stopped ");
    w.wait(p, direction::read, "read");
    p.say("x");
    EXPECT_EQ(w.run(), "read ");
}

// Called straight away, as a coroutine on the hub's executor is.
TEST(ReadyHub, OneThatThrowsLosesNobody)
{
    world w;
    const asio::any_io_executor executor = w.context.get_executor();
    int called = 0, fds[3][2];
    std::vector<std::unique_ptr<net_detail::hub_socket>> sockets;
    for (int* const ends : fds) {
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        sockets.push_back(std::make_unique<net_detail::hub_socket>(w.hub));
        ASSERT_TRUE(sockets.back()->watch(ends[0]));
        sockets.back()->wait(direction::read, asio::bind_executor(executor, [&](const error_code&) {
                                 if (++called == 1) throw std::runtime_error("mine");
                             }));
        EXPECT_EQ(::write(ends[1], "x", 1), 1);
    }
    EXPECT_THROW(w.context.run(), std::runtime_error);
    EXPECT_EQ(called, 1);
    w.run();
    EXPECT_EQ(called, 3);
    sockets.clear();
    for (const int* const ends : fds)
        for (const int end : {ends[0], ends[1]}) ::close(end);
}

TEST(ReadyHub, ASocketMayGoWhileItsTurnIsDue)
{
    world w;
    pair a = w.make(), b = w.make();
    a.wire->when_ready(direction::read, ready_handler([&](const error_code&) { b.wire.reset(); }));
    w.wait(b, direction::read, "b");
    a.say("1");
    b.say("2");
    EXPECT_EQ(w.run(), "b! ");
}

TEST(ReadyHub, NobodyWaitingLetsTheContextEnd)
{
    world w;
    pair p = w.make();
    w.wait(p, direction::read, "read");
    w.context.poll();
    p.wire.reset();
    EXPECT_EQ(w.run(), "read! ");
}

// As a coroutine does: who waits owns the socket, the socket the hub, and the hub the waiter.
TEST(ReadyHub, AContextThatDiesTakesTheWaitersAlong)
{
    auto kept = std::make_shared<int>(1);
    const std::weak_ptr<int> left = kept;
    {
        world w;
        pair p = w.make();
        transport& wire = *p.wire;
        wire.when_ready(direction::read, ready_handler([kept = std::move(kept), own = std::move(p.wire)](const error_code&) {}));
        w.context.poll();
        EXPECT_FALSE(left.expired());
    }
    EXPECT_TRUE(left.expired());
}

TEST(ReadyHub, AHandlerOfAnotherExecutorGoesOnThere)
{
    world w;
    asio::io_context other(1);
    pair p = w.make();
    p.wire->when_ready(direction::read, ready_handler(asio::bind_executor(other.get_executor(), [&](const error_code&) { w.log += "there "; })));
    p.say("x");
    EXPECT_EQ(w.run(), "");
    other.run();
    EXPECT_EQ(w.log, "there ");
}

TEST(ReadyHub, MoreThanFitATurnGoOnInTheNext)
{
    world w;
    std::vector<std::unique_ptr<pair>> many;
    int told = 0;
    for (std::size_t i = 0; i < ready_hub::most_in_turn + 10; ++i) {
        many.push_back(std::make_unique<pair>(w.context, w.hub));
        many.back()->wire->when_ready(direction::read, ready_handler([&](const error_code&) { ++told; }));
        many.back()->say("x");
    }
    while (told == 0) w.context.poll_one();
    EXPECT_EQ(told, static_cast<int>(ready_hub::most_in_turn));
    w.run();
    EXPECT_EQ(told, static_cast<int>(ready_hub::most_in_turn + 10));
}

TEST(ReadyHub, WithoutAHubASocketWaitsByItself)
{
    world w;
    pair p(w.context, nullptr);
    noted_task task(w);
    EXPECT_FALSE(p.wire->at_turn_end(task));
    w.wait(p, direction::read, "read");
    p.say("x");
    EXPECT_EQ(w.run(), "read ");
}

}  // namespace ready_hub_test
}  // namespace
}  // namespace reagent
