// A whole run without a handle: coroutine, sink of events, what an empty agent and a run that never began answer.
#include "agent_fixture.hpp"

namespace {
namespace whole_run_test {

using namespace reagent;
using namespace agent_test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class WholeRun : public fixture {
protected:
    log_sink to_log()
    {
        return log_sink(
            [this](log_level level, std::string_view line) { logged.push_back(std::to_string(static_cast<int>(level)) + " " + std::string(line)); });
    }
    std::vector<std::string> logged;
};

TEST_F(WholeRun, ByACoroutineWithTheWholeError)
{
    script({scripted_round("end")});
    const agent a = make(agent_options().log(to_log()));
    EXPECT_EQ(rt::complete(context, a.run("hi")).text(), "end");
    const budget money("team", usd("1"));
    try {
        rt::complete(context, a.run(run_request("hi").budget(money)));
        FAIL() << "no price is known";
    } catch (const config_error& e) {
        EXPECT_THAT(e.message(), HasSubstr("budget.maxCostUsd: no price is known for model scripted-model"));
    }
    EXPECT_THAT(logged, SizeIs(0));
    conversation talk = a.chat();
    EXPECT_THROW(rt::complete(context, talk.send(run_request("hi").budget(money))), config_error);
}

TEST_F(WholeRun, ACodeLeavesItsSentenceInTheLog)
{
    script({});
    const agent a = make(agent_options().log(to_log()));
    const budget money("team", usd("1"));
    error_code ec;
    a.async_run(run_request("hi").budget(money), [&ec](error_code e, const run_result&) { ec = e; });
    rt::run_until_idle(context, std::chrono::microseconds(0));
    EXPECT_EQ(ec, errc::invalid_config);
    conversation talk = a.chat();
    talk.async_send(run_request("hi").budget(money), [&ec](error_code e, const run_result&) { ec = e; });
    rt::run_until_idle(context, std::chrono::microseconds(0));
    EXPECT_THAT(logged, ElementsAre(HasSubstr("no price is known for model scripted-model"), HasSubstr("no price is known for model scripted-model")));
}

TEST_F(WholeRun, AQuestionIsEnough)
{
    script({scripted_round("end")});
    std::string text;
    make().async_run("hi", [&text](error_code, const run_result& r) { text = r.text(); });
    rt::run_until_idle(context, std::chrono::microseconds(0));
    EXPECT_EQ(text, "end");
}

TEST_F(WholeRun, OfAnEmptyHandleIsAValidationError)
{
    const agent none;
    conversation silent;
    const auto ignore = [](error_code, const run_result&) {};
    EXPECT_THROW(none.async_run("hi", ignore), validation_error);
    EXPECT_THROW(none.run("hi"), validation_error);
    EXPECT_THROW(none.start("hi"), validation_error);
    EXPECT_THROW(silent.async_send("hi", ignore), validation_error);
    EXPECT_THROW(silent.send("hi"), validation_error);
    EXPECT_THROW(silent.start("hi"), validation_error);
}

TEST_F(WholeRun, TheSinkGetsWhatAReaderGets)
{
    const std::vector<scripted_round> rounds{scripted_round("one").deltas(3).call("a", "t"), scripted_round("two").deltas(2)};
    const agent_options options = agent_options().tool(any_tool("t", [](const json&) { return json("ok"); })).clock(std::make_shared<rt::manual_clock>());
    script(rounds);
    go(make(options));
    script(rounds);
    seen_events pushed;
    const run_result r = rt::complete(context, make(options).run(run_request("hi").on_events([&pushed](const event_batch& b) { take(pushed, b); })));
    EXPECT_EQ(r.text(), "two");
    EXPECT_EQ(pushed.all, seen.all);
    EXPECT_EQ(pushed.text, "onetwo");
    script(rounds);
    seen_events of_chat;
    conversation talk = make(options).chat();
    talk.async_send(run_request("hi").on_events([&of_chat](const event_batch& b) { take(of_chat, b); }), [](error_code, const run_result&) {});
    rt::run_until_idle(context, std::chrono::microseconds(0));
    EXPECT_EQ(of_chat.all, seen.all);
}

TEST_F(WholeRun, ASinkThatThrowsIsOnlyLogged)
{
    script({scripted_round("end")});
    const agent a = make(agent_options().log(to_log()));
    run_request request("hi");
    request.on_events([](const event_batch&) { throw std::runtime_error("the screen is gone"); });
    EXPECT_EQ(rt::complete(context, a.run(request)).text(), "end");
    EXPECT_THAT(logged, ::testing::Contains(HasSubstr("on_events threw: the screen is gone")));
    EXPECT_THROW(a.start(request), validation_error);
}

TEST_F(WholeRun, ClosedBeforeItBeganIsCancelled)
{
    script({scripted_round("end")});
    reagent::run r = make(agent_options().system("Be brief.")).start("hi");
    EXPECT_THROW(r.result(), validation_error);
    rt::complete(context, r.close());
    EXPECT_TRUE(r.finished());
    EXPECT_EQ(r.result().outcome(), run_outcome::cancelled);
    EXPECT_EQ(r.result().error(), "cancelled");
    EXPECT_THAT(shape(r.result().messages()), ElementsAre("system:Be brief.", "user:hi"));
    event_batch batch;
    EXPECT_FALSE(rt::complete(context, r.read(batch)));
    EXPECT_THAT(model_->requests(), SizeIs(0));
}

/// Every event says when it was, deltas included.
TEST_F(WholeRun, EveryEventCarriesItsTime)
{
    script({scripted_round("text").deltas(2)});
    go(make());
    ASSERT_GE(seen.count("loop:delta"), 2u);
    for (const json& e : seen.all) EXPECT_TRUE(e["ts"].is_string()) << e.dump();
}

TEST_F(WholeRun, AConversationKeepsTheQuestionWhenTrimTookTheSystemPrompt)
{
    script({scripted_round("one"), scripted_round("two")});
    run_hooks h;
    h.trim = [](transcript m) {
        if (m.front()->who == role::system) m.erase(m.begin());
        return m;
    };
    conversation talk = make(agent_options().system("Be brief.").hooks(h)).chat();
    rt::complete(context, talk.send("first"));
    EXPECT_THAT(shape(talk.history()), ElementsAre("user:first", "assistant:one"));
    rt::complete(context, talk.send("second"));
    EXPECT_THAT(shape(talk.history()), ElementsAre("user:first", "assistant:one", "user:second", "assistant:two"));
}

}  // namespace whole_run_test
}  // namespace
