/// A thousand agents on one budget, seen from both ends: what the clients report and what the server counted.
#pragma once
#include <reagent/agent/agent.hpp>
#include <reagent/agent/make_tool.hpp>
#include <reagent/governance/budget.hpp>
#include <reagent/model/message.hpp>
#include <reagent/model/pricing.hpp>
#include <reagent/providers/openai.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace reagent::inline v0::fleet_detail {

/// Prices that differ, so that a swap shows: nano-dollars a token.
inline constexpr std::int64_t input_price = 2'000, output_price = 7'000;

inline usd price(std::uint64_t input, std::uint64_t output)
{
    return usd::from_nanos(static_cast<std::int64_t>(input) * input_price + static_cast<std::int64_t>(output) * output_price);
}

struct stock_args {
    std::string name;
};
BOOST_DESCRIBE_STRUCT(stock_args, (), (name))

inline awaitable<json> stock(stock_args a, tool_context&)
{
    co_return json::object().set("name", a.name).set("left", 3);
}

/// What the clients saw.
class fleet_report {
public:
    std::map<std::string, int> ends;   ///< `completed`, or outcome and error token
    std::vector<std::string> unsound;  ///< transcripts that `check_transcript` objects to
    std::vector<std::string> threw;    ///< runs that ended in an exception
    int runs = 0;
    int of(const std::string& end) const
    {
        const auto found = ends.find(end);
        return found == ends.end() ? 0 : found->second;
    }
    /// Ends that begin with `prefix`.
    int like(std::string_view prefix) const
    {
        int n = 0;
        for (const auto& [end, count] : ends) n += end.starts_with(prefix) ? count : 0;
        return n;
    }
    std::string shown() const
    {
        std::string out;
        for (const auto& [end, count] : ends) out += std::to_string(count) + " x " + end + "\n";
        return out;
    }
};

/// How to run them.
class fleet {
public:
    std::string base_url;
    budget money;
    unsigned threads = 1, runs = 1000;
    bool stream = false, with_tools = false;
    std::uint64_t max_tokens = 40;
    std::chrono::milliseconds idle{20'000};
    /// One run in so many is cancelled from outside, and one in so many while its events are read; 0 is none.
    unsigned cancel_every = 0;
    unsigned seed = 1;

    fleet_report go() const;

private:
    class lane;
};

/// The runs of one thread, on a context of its own.
class fleet::lane {
public:
    lane(const fleet& f, unsigned number, fleet_report& report, std::mutex& lock) : fleet_(f), report_(report), lock_(lock), random_(f.seed * 977 + number)
    {
        openai_options o("mock-model");
        o.base_url(std::string_view(f.base_url)).key(secret("k")).idle(f.idle);
        agent_options options;
        options.system("You count things.").rates(rates(input_price, output_price));
        if (f.with_tools) options.tool(make_tool("stock", "How many are left.", &stock));
        agent_ = agent(context_.get_executor(), openai_chat(http_, o), std::move(options));
        for (unsigned i = number; i < f.runs; i += f.threads) start(i);
    }
    void work()
    {
        context_.run();
        http_.close_idle();
    }

private:
    unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }

    static std::string numbered(unsigned i)
    {
        std::string digits = std::to_string(i);
        return "Question " + std::string(6 - digits.size(), '0') + digits;  // bodies of one length
    }

    void start(unsigned i)
    {
        run_request request(numbered(i));
        generate_options how;
        how.stream = fleet_.stream;
        request.budget(fleet_.money.child("run")).options(how).max_tokens(fleet_.max_tokens);
        const bool from_outside = fleet_.cancel_every != 0 && i % fleet_.cancel_every == 0;
        const bool by_reader = fleet_.cancel_every != 0 && i % fleet_.cancel_every == 1;
        if (by_reader) {
            asio::co_spawn(context_, read(std::move(request), below(6)), [this](std::exception_ptr e) { note(e, nullptr); });
            return;
        }
        asio::cancellation_signal& stop = signals_.emplace_back();
        agent_.async_run(std::move(request), asio::bind_cancellation_slot(stop.slot(), [this](error_code ec, const run_result& r) {
                             note(ec ? std::make_exception_ptr(boost::system::system_error(ec)) : nullptr, &r);
                         }));
        if (from_outside) hop(stop, below(300));
    }

    /// Cancels after so many turns of the loop.
    void hop(asio::cancellation_signal& stop, unsigned left)
    {
        asio::post(context_, [this, &stop, left] {
            if (left == 0) stop.emit(asio::cancellation_type::terminal);
            else hop(stop, left - 1);
        });
    }

    /// Reads the events itself and goes away after some batches.
    awaitable<void> read(run_request request, unsigned batches)
    {
        run r = agent_.start(std::move(request));
        event_batch batch;
        for (;;) {
            const bool more = co_await r.read(batch);
            if (!more) break;
            if (batches-- == 0) r.cancel();
        }
        note(nullptr, &r.result());
    }

    void note(const std::exception_ptr& failure, const run_result* r)
    {
        const std::lock_guard guard(lock_);
        if (failure) {
            ++report_.runs;
            try {
                std::rethrow_exception(failure);
            } catch (const std::exception& e) {
                report_.threw.push_back(e.what());
            }
        }
        if (failure || r == nullptr) return;
        ++report_.runs;
        std::string end(to_string(r->outcome()));
        if (r->error()) end += " " + *r->error();
        ++report_.ends[end];
        for (std::string& complaint : check_transcript(r->messages())) report_.unsound.push_back(std::move(complaint));
    }

    const fleet& fleet_;
    fleet_report& report_;
    std::mutex& lock_;
    std::minstd_rand random_;
    asio::io_context context_{1};
    http_client http_{context_.get_executor()};
    agent agent_;
    std::deque<asio::cancellation_signal> signals_;
};

inline fleet_report fleet::go() const
{
    fleet_report report;
    std::mutex lock;
    std::vector<std::thread> pool;
    for (unsigned t = 0; t < threads; ++t) {
        pool.emplace_back([this, t, &report, &lock] {
            lane own(*this, t, report, lock);
            own.work();
        });
    }
    for (std::thread& t : pool) t.join();
    return report;
}

}  // namespace reagent::inline v0::fleet_detail
