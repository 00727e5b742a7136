// One model call, cancelled after every handler: as JSON and as a stream, over plain TCP and TLS, paid for from a budget.
#include "cancel_world.hpp"
#include "paying_gate.hpp"

#include <gtest/gtest.h>

namespace {
namespace generate_cancel_test {

using namespace cancel_tests;
using paying_gate_detail::paying_gate;

enum class form { json, stream };

class generate_case final : public rt::cancel_case {
public:
    generate_case(asio::io_context& io, form f, wire w)
        : world_(io, w, {f == form::stream ? rt::sse_response(rt::openai_events({"a", "b", "c"})) : rt::http_response(200, rt::openai_answer("abc"))}),
          form_(f),
          gate_(money_)
    {}
    awaitable<void> operation() override
    {
        generate_request request(transcript{message::user("hi")});
        request.options.stream = form_ == form::stream;
        request.gate = &gate_;
        if (form_ == form::json) {
            generate_result r = co_await world_.model->generate(std::move(request));
            text_ = r.text;
            co_return;
        }
        const model_call_ptr call = world_.model->start(std::move(request));
        event_batch batch;
        for (;;) {
            const bool more = co_await call->read(batch);
            for (const event& e : batch) text_ += e.text();
            if (!more) break;
        }
    }
    void finish() override { world_.finish(); }
    std::shared_ptr<rt::manual_clock> clock() override { return world_.manual; }
    std::string verify(const rt::cancel_outcome& o) override
    {
        std::string out = world_.trouble + complaints_of(o) + complaints_of(money_);
        if (o.failure && world_.idle != 0) out += "a connection with half an exchange was kept; ";
        if (!o.failure && text_ != "abc") out += "answered \"" + text_ + "\"; ";
        if (!o.failure && money_.state().spent.tokens != 15) out += "settled " + std::to_string(money_.state().spent.tokens) + " tokens of a whole answer; ";
        return out;
    }

private:
    provider_world world_;
    form form_;
    budget money_ = budget("team", budget_caps(std::nullopt, 100'000)).child("call");
    paying_gate gate_;
    std::string text_;
};

void holds(form f, wire w)
{
    for (const bool repeatedly : {false, true}) {
        rt::cancel_options options;
        if (repeatedly) options.again(impatience);
        const rt::cancel_report r = rt::cancel_everywhere([&](asio::io_context& io) { return std::make_unique<generate_case>(io, f, w); }, options);
        EXPECT_TRUE(r) << r;
        EXPECT_GT(r.aborted, 2u) << r;
    }
}

TEST(CancelGenerate, OneBodyOverTcp)
{
    holds(form::json, wire::plain);
}
TEST(CancelGenerate, AStreamOverTcp)
{
    holds(form::stream, wire::plain);
}
TEST(CancelGenerate, OneBodyOverTls)
{
    net_tests::certificates::shared();  // made before descriptors are counted
    holds(form::json, wire::tls);
}
TEST(CancelGenerate, AStreamOverTls)
{
    net_tests::certificates::shared();
    holds(form::stream, wire::tls);
}

}  // namespace generate_cancel_test
}  // namespace
