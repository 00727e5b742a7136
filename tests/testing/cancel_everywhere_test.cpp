#include <reagent/base/spawn.hpp>
#include <reagent/testing/byte_server.hpp>
#include <reagent/testing/cancel_everywhere.hpp>
#include <reagent/testing/http_text.hpp>
#include <reagent/testing/live_counter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>

namespace {
namespace cancel_everywhere_test {

using namespace std::chrono_literals;
using namespace reagent;
using namespace reagent::testing;
using asio::ip::tcp;

std::string text(const cancel_report& r)
{
    std::ostringstream out;
    out << r;
    return out.str();
}

cancel_options impatient()
{
    return cancel_options().patience(100ms).cleanup(1s);
}

awaitable<void> hops(asio::io_context&, int n)
{
    for (int i = 0; i < n; ++i) co_await asio::post(asio::use_awaitable);
}

awaitable<void> many_hops(asio::io_context& c)
{
    // What the first step starts is more than what is there to finish.
    const auto left = std::make_shared<int>(40);
    for (int i = 0; i < 40; ++i) asio::post(c, [left] { --*left; });
    while (*left > 0) co_await asio::post(asio::use_awaitable);
    co_await hops(c, 3);
}

/// Talks to a server and closes its socket whatever happens.
class exchange : public cancel_case {
public:
    exchange(asio::io_context& context, bool own_thread)
        : server_(own_thread ? std::make_unique<byte_server>(script()) : std::make_unique<byte_server>(context.get_executor(), script()))
    {}
    awaitable<void> operation() override { return talk(server_->port()); }
    void finish() override { server_->stop(); }

private:
    static byte_script script() { return byte_script().request().send(http_head(200, {})).trickle("hello").close(); }
    static awaitable<void> talk(std::uint16_t port)
    {
        tcp::socket socket(co_await asio::this_coro::executor);
        const tcp::endpoint where(asio::ip::address_v4::loopback(), port);
        co_await socket.async_connect(where, asio::use_awaitable);
        const std::string request = "GET / HTTP/1.1\r\n\r\n";
        co_await socket.async_send(asio::buffer(request), asio::use_awaitable);
        char block[64];
        for (;;) {
            error_code ec;
            co_await socket.async_read_some(asio::buffer(block), asio::redirect_error(asio::use_awaitable, ec));
            if (ec == asio::error::eof) co_return;
            if (ec) throw boost::system::system_error(ec);
        }
    }
    std::unique_ptr<byte_server> server_;
};

TEST(CancelEverywhere, HoldsForAPlainOperationAndVisitsEveryHandler)
{
    const cancel_report r = cancel_everywhere([](asio::io_context& c) { return hops(c, 5); });
    EXPECT_TRUE(r) << r;
    EXPECT_GE(r.points, 6u);
    EXPECT_GE(r.runs, r.points);
}

TEST(CancelEverywhere, ReportsHowTheCancelledRunsEnded)
{
    const cancel_report r = cancel_everywhere([](asio::io_context& c) { return hops(c, 5); });
    EXPECT_EQ(r.aborted + r.returned + 2, r.runs) << r;  // the first run has no signal, the last ends before it
    EXPECT_GE(r.aborted, 4u);
    EXPECT_NE(text(r).find(std::to_string(r.aborted) + " aborted"), std::string::npos);
}

TEST(CancelEverywhere, HoldsForAnOperationWhoseFirstStepStartsMuch)
{
    const cancel_report r = cancel_everywhere(many_hops, impatient());
    EXPECT_TRUE(r) << r;
}

TEST(CancelEverywhere, HoldsForASocketOperationOnASharedContext)
{
    const cancel_report r = cancel_everywhere([](asio::io_context& c) { return std::make_unique<exchange>(c, false); });
    EXPECT_TRUE(r) << r;
    EXPECT_GT(r.points, 20u);
}

TEST(CancelEverywhere, HoldsAgainstAServerOnItsOwnThread)
{
    const cancel_report r = cancel_everywhere([](asio::io_context& c) { return std::make_unique<exchange>(c, true); });
    EXPECT_TRUE(r) << r;
    EXPECT_GE(r.points, 3u);
}

/// Waits by a manual clock; `deaf` ignores its cancellation.
class waiting : public cancel_case {
public:
    waiting(asio::io_context& context, bool deaf) : context_(context), deaf_(deaf) {}
    awaitable<void> operation() override { return isolated(wait(context_, clock_, deaf_)); }
    std::shared_ptr<manual_clock> clock() override { return clock_; }

private:
    static awaitable<void> wait(asio::io_context& context, std::shared_ptr<manual_clock> clock, bool deaf)
    {
        if (deaf) co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        co_await asio::post(asio::use_awaitable);
        bool due = false;
        asio::steady_timer cv(context, asio::steady_timer::time_point::max());
        const auto timer = clock->make_timer(context.get_executor(), [&] {
            due = true;
            cv.cancel();
        });
        timer->arm(clock->now() + 1h);
        error_code ec;
        co_await cv.async_wait(asio::redirect_error(asio::use_awaitable, ec));
        if (!due) throw boost::system::system_error(ec);
    }
    asio::io_context& context_;
    bool deaf_;
    std::shared_ptr<manual_clock> clock_ = std::make_shared<manual_clock>();
};

TEST(CancelEverywhere, MovesTheClockWhenNothingElseCanHappen)
{
    const cancel_report r = cancel_everywhere([](asio::io_context& c) { return std::make_unique<waiting>(c, false); }, impatient());
    EXPECT_TRUE(r) << r;
}

TEST(CancelEverywhere, FindsAnOperationThatIgnoresCancellation)
{
    const cancel_report r = cancel_everywhere([](asio::io_context& c) { return std::make_unique<waiting>(c, true); }, impatient());
    EXPECT_FALSE(r);
    EXPECT_EQ(r.failure, "the cancelled operation did not end");
    EXPECT_NE(r.failed_at, 0u);
}

/// Cleans up when cancelled, and takes each further signal of its host for a reason to stop cleaning.
class easily_disturbed : public cancel_case {
public:
    explicit easily_disturbed(asio::io_context& context) : context_(context) {}
    void start(asio::io_context& context, asio::cancellation_slot stop, std::function<void(std::exception_ptr)> done) override
    {
        asio::post(context, [this, done = std::move(done)]() mutable { next(std::move(done), 3); });
        stop.assign([this](asio::cancellation_type) { ++signals_; });
    }
    std::string verify(const cancel_outcome&) override { return signals_ > 1 ? "cleaned up by halves" : ""; }

private:
    void next(std::function<void(std::exception_ptr)> done, int left)
    {
        if (left == 0) return done(nullptr);
        asio::post(context_, [this, done = std::move(done), left]() mutable { next(std::move(done), left - 1); });
    }
    asio::io_context& context_;
    int signals_ = 0;
};

TEST(CancelEverywhere, AnOperationMayStartItselfAndAHostMaySignalAgain)
{
    const auto make = [](asio::io_context& c) { return std::make_unique<easily_disturbed>(c); };
    const cancel_report patient = cancel_everywhere(make, impatient());
    EXPECT_TRUE(patient) << patient;
    EXPECT_GE(patient.returned, 3u);
    const cancel_report r = cancel_everywhere(make, impatient().again(3));
    EXPECT_EQ(text(r), "cancelled after handler 1: cleaned up by halves");
}

awaitable<void> wants_total(asio::io_context& c)
{
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await hops(c, 5);
}

TEST(CancelEverywhere, TheTypeOfTheSignalIsTheCallers)
{
    const auto total = impatient().type(asio::cancellation_type::total);
    const cancel_report deaf = cancel_everywhere([](asio::io_context& c) { return hops(c, 5); }, total);
    EXPECT_TRUE(deaf) << deaf;
    EXPECT_EQ(deaf.aborted, 0u) << "coroutines pass terminal alone";
    const cancel_report r = cancel_everywhere(wants_total, total);
    EXPECT_TRUE(r) << r;
    EXPECT_GE(r.aborted, 4u);
}

awaitable<void> leak_when_cancelled(asio::io_context&, std::vector<int>* leaked)
{
    // The bug: a descriptor closed on the straight path only.
    const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    leaked->push_back(fd);
    co_await asio::post(asio::use_awaitable);
    co_await asio::post(asio::use_awaitable);
    ::close(fd);
    leaked->pop_back();
}

TEST(CancelEverywhere, FindsALeakedDescriptorAtTheFirstPointThatLeaks)
{
    std::vector<int> leaked;
    const cancel_report r = cancel_everywhere([&leaked](asio::io_context& c) { return leak_when_cancelled(c, &leaked); }, impatient());
    EXPECT_FALSE(r);
    EXPECT_NE(text(r).find("cancelled after handler 1: left open by the operation: "), std::string::npos) << r;
    EXPECT_NE(r.failure.find("/dev/null"), std::string::npos);
    ASSERT_EQ(leaked.size(), 1u);
    ::close(leaked[0]);
}

awaitable<void> leave_timer(asio::io_context& context)
{
    const auto timer = std::make_shared<asio::steady_timer>(context, 1h);
    timer->async_wait([timer](error_code) {});
    co_await asio::post(asio::use_awaitable);
    co_await asio::post(asio::use_awaitable);
    timer->cancel();
}

TEST(CancelEverywhere, FindsWorkLeftOnTheContext)
{
    const cancel_report r = cancel_everywhere(leave_timer, impatient());
    EXPECT_FALSE(r);
    EXPECT_EQ(r.failed_at, 1u);
    EXPECT_NE(r.failure.find("did not run out of work"), std::string::npos) << r;
}

awaitable<void> keep_object(asio::io_context&, live_counter counter, std::vector<live_counter::token>* kept)
{
    kept->push_back(counter.make());
    co_await asio::post(asio::use_awaitable);
    co_await asio::post(asio::use_awaitable);
    kept->pop_back();
}

TEST(CancelEverywhere, FindsLiveObjects)
{
    const live_counter counter;
    std::vector<live_counter::token> kept;
    const cancel_report r =
        cancel_everywhere([&](asio::io_context& c) { return keep_object(c, counter, &kept); }, impatient().live("things", [&] { return counter.live(); }));
    EXPECT_FALSE(r);
    EXPECT_EQ(r.failure, "live things: 0 before, 1 after");
}

awaitable<void> change_signal(asio::io_context&)
{
    std::signal(SIGUSR2, SIG_IGN);
    co_await asio::post(asio::use_awaitable);
}

TEST(CancelEverywhere, FindsAChangedSignalDisposition)
{
    const cancel_report r = cancel_everywhere(change_signal, impatient());
    std::signal(SIGUSR2, SIG_DFL);
    EXPECT_FALSE(r);
    EXPECT_EQ(r.failed_at, 0u);
    EXPECT_NE(r.failure.find("SIGUSR2"), std::string::npos) << r;
}

awaitable<void> fail(asio::io_context&)
{
    co_await asio::post(asio::use_awaitable);
    throw std::runtime_error("broken");
}

TEST(CancelEverywhere, AnOperationThatFailsUncancelledIsAFailureUnlessAllowed)
{
    const cancel_report r = cancel_everywhere(fail, impatient());
    EXPECT_EQ(text(r), "not cancelled: the operation failed without being cancelled: broken");
    EXPECT_TRUE(cancel_everywhere(fail, impatient().may_fail()));
}

class complaining : public cancel_case {
public:
    explicit complaining(asio::io_context& context) : context_(context) {}
    awaitable<void> operation() override { return hops(context_, 3); }
    std::string verify(const cancel_outcome& o) override { return o.signalled && o.cancelled_at == 3 ? "bad transcript" : ""; }

private:
    asio::io_context& context_;
};

TEST(CancelEverywhere, ReportsTheFirstComplaint)
{
    const cancel_report r = cancel_everywhere([](asio::io_context& c) { return std::make_unique<complaining>(c); }, impatient());
    EXPECT_EQ(text(r), "cancelled after handler 3: bad transcript");
}

}  // namespace cancel_everywhere_test
}  // namespace
