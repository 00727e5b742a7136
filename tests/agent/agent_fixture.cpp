#include "agent_fixture.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

namespace agent_test {

std::vector<std::string> seen_events::types() const
{
    std::vector<std::string> out;
    for (const reagent::json& e : all) {
        const std::string type = e["type"].as_string();
        if (type != "loop:delta") out.push_back(type.starts_with("loop:") ? type.substr(5) : type);
    }
    return out;
}

const reagent::json& seen_events::last(std::string_view type) const
{
    static const reagent::json none;
    for (auto e = all.rbegin(); e != all.rend(); ++e)
        if ((*e)["type"].as_string() == type) return (*e)["data"];
    return none;
}

std::size_t seen_events::count(std::string_view type) const
{
    std::size_t n = 0;
    for (const reagent::json& e : all) n += e["type"].as_string() == type ? 1 : 0;
    return n;
}

void take(seen_events& seen, const reagent::event_batch& batch)
{
    ++seen.batches;
    for (const reagent::event& e : batch) {
        seen.all.push_back(e.to_json());
        seen.text += e.text();
    }
}

reagent::awaitable<reagent::run_result> read_all(reagent::run* r, seen_events* seen)
{
    reagent::event_batch batch;
    for (;;) {
        const bool more = co_await r->read(batch);
        take(*seen, batch);
        if (!more) break;
    }
    co_return r->result();
}

fixture::fixture() = default;
fixture::~fixture() = default;

void fixture::TearDown()
{
    // A test that failed half-way left its runs waiting; what reads them still refers to them.
    for (reagent::run& r : kept_) r.cancel();
    // Nothing of ours may be left: the context runs out of work by itself.
    context.restart();
    context.run_for(10s);
    EXPECT_TRUE(context.stopped());
}

std::shared_ptr<reagent::scripted_provider> fixture::script(std::vector<reagent::scripted_round> rounds, std::string model)
{
    model_ = reagent::scripted_provider::make(std::move(rounds), std::move(model));
    return model_;
}

reagent::run& fixture::keep(reagent::run r)
{
    return kept_.emplace_back(std::move(r));
}

reagent::agent fixture::make(reagent::agent_options options)
{
    return reagent::agent(context.get_executor(), model_, std::move(options));
}

reagent::run_result fixture::go(const reagent::agent& a, reagent::run_request request)
{
    reagent::run r = a.start(std::move(request));
    return go(r);
}

reagent::run_result fixture::go(reagent::run& r)
{
    reagent::run_result result = reagent::testing::complete(context, read_all(&r, &seen));
    EXPECT_THAT(reagent::check_transcript(result.messages()), ::testing::IsEmpty());
    return result;
}

std::vector<std::string> fixture::shape(const reagent::transcript& messages)
{
    std::vector<std::string> out;
    for (const reagent::message_ptr& m : messages) {
        std::string line(reagent::to_string(m->who));
        line += ":" + m->text();
        for (const reagent::tool_call* c : m->calls()) line += "[" + c->id + "]";
        out.push_back(std::move(line));
    }
    return out;
}

reagent::tool any_tool(std::string name, std::function<reagent::json(const reagent::json&)> f)
{
    auto shared = std::make_shared<std::function<reagent::json(const reagent::json&)>>(std::move(f));
    class body {
    public:
        explicit body(std::shared_ptr<std::function<reagent::json(const reagent::json&)>> g) : f_(std::move(g)) {}
        reagent::awaitable<reagent::json> operator()(reagent::json args, reagent::tool_context&) const { return call(f_, std::move(args)); }

    private:
        static reagent::awaitable<reagent::json> call(std::shared_ptr<std::function<reagent::json(const reagent::json&)>> g, reagent::json args)
        {
            co_return (*g)(args);
        }
        std::shared_ptr<std::function<reagent::json(const reagent::json&)>> f_;
    };
    return reagent::tool::from_check(std::move(name), "A tool of a test.", reagent::json::object().set("type", "object"), {}, body(shared));
}

void bench_of_tools::release_all()
{
    for (auto& t : waiting) t->cancel();
    waiting.clear();
}

namespace {

reagent::awaitable<reagent::json> wait_on_bench(bench_of_tools* b, std::string name, std::string id)
{
    b->log.push_back("start " + id);
    ++b->running;
    b->most = std::max(b->most, b->running);
    auto gate = std::make_shared<asio::steady_timer>(b->context, asio::steady_timer::time_point::max());
    b->waiting.push_back(gate);
    boost::system::error_code ignored;
    co_await gate->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
    const bool cut = state.cancelled() != asio::cancellation_type::none;
    --b->running;
    ++(cut ? b->cancelled : b->finished);
    b->log.push_back((cut ? "cut " : "end ") + id);
    if (cut) throw boost::system::system_error(asio::error::operation_aborted);
    co_return reagent::json(name + " done");
}

}  // namespace

reagent::tool bench_of_tools::tool(std::string name)
{
    class body {
    public:
        body(bench_of_tools* b, std::string n) : b_(b), n_(std::move(n)) {}
        reagent::awaitable<reagent::json> operator()(reagent::json, reagent::tool_context& c) const { return wait_on_bench(b_, n_, c.call_id); }

    private:
        bench_of_tools* b_;
        std::string n_;
    };
    return reagent::tool::from_check(name, "Waits.", reagent::json::object().set("type", "object"), {}, body(this, name));
}

}  // namespace agent_test
