#include "agent_fixture.hpp"

namespace {
namespace loop_seams_test {

using namespace reagent;
using agent_test::any_tool;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class LoopSeams : public agent_test::fixture {
protected:
    LoopSeams()
    {
        hooks.on_error = [this](const error_report& e) { sources.push_back(e.source); };
    }
    run_hooks hooks;
    std::vector<std::string> sources;
};

json fine(const json&)
{
    return json("ok");
}

TEST_F(LoopSeams, K36_TheThunkIsAskedOncePerRound)
{
    script({scripted_round().call("1", "a"), scripted_round("end")});
    int asked = 0;
    tool_thunk thunk = [&] {
        std::vector<tool> out{any_tool("a", fine)};
        if (++asked > 1) out.push_back(any_tool("b", fine));
        return out;
    };
    go(make(agent_options().tools(thunk)));
    EXPECT_EQ(asked, 2);
    EXPECT_THAT(*model_->requests()[0].tools, SizeIs(1));
    EXPECT_THAT(*model_->requests()[1].tools, SizeIs(2));
}

TEST_F(LoopSeams, K37_AThunkThatThrowsKeepsTheSetBefore)
{
    script({scripted_round().call("1", "a"), scripted_round("end")});
    int asked = 0;
    tool_thunk thunk = [&] {
        if (++asked > 1) throw std::runtime_error("later");
        return std::vector<tool>{any_tool("a", fine)};
    };
    const run_result r = go(make(agent_options().hooks(hooks).tools(thunk)));
    EXPECT_EQ(r.outcome(), run_outcome::completed);
    EXPECT_THAT(*model_->requests()[1].tools, SizeIs(1));
    EXPECT_THAT(sources, ElementsAre("tools"));
}

TEST_F(LoopSeams, K38_AssembleIsAViewOfOneRequest)
{
    script({scripted_round().call("1", "a"), scripted_round("end")});
    hooks.assemble = [](transcript t) { return transcript{t.back()}; };
    const run_result r = go(make(agent_options().hooks(hooks).tool(any_tool("a", fine))));
    EXPECT_THAT(shape(model_->requests()[1].messages), ElementsAre("tool:ok"));
    EXPECT_THAT(r.messages(), SizeIs(4));
    EXPECT_EQ(seen.count("loop:assemble"), 2u);
    EXPECT_EQ(seen.last("loop:assemble")["before"].get_int64(), 3);
    EXPECT_EQ(seen.last("loop:assemble")["after"].get_int64(), 1);
}

TEST_F(LoopSeams, K38_AssembleThatThrowsFailsOpen)
{
    script({scripted_round("end")});
    hooks.assemble = [](transcript) -> transcript { throw std::runtime_error("x"); };
    const run_result r = go(make(agent_options().hooks(hooks).system("S")));
    EXPECT_EQ(r.outcome(), run_outcome::completed);
    EXPECT_THAT(model_->requests()[0].messages, SizeIs(2));
    EXPECT_THAT(sources, ElementsAre("assemble"));
}

TEST_F(LoopSeams, K39_TrimReplacesTheTranscript)
{
    script({scripted_round("end")});
    hooks.trim = [](transcript t) { return transcript{t.back()}; };
    transcript start{message::user("one"), message::assistant("two"), message::user("three")};
    const run_result r = go(make(agent_options().hooks(hooks)), run_request(start));
    EXPECT_THAT(shape(r.messages()), ElementsAre("user:three", "assistant:end"));
    EXPECT_EQ(r.metrics().compactions, 1u);
    EXPECT_EQ(seen.count("loop:trim"), 1u);
    EXPECT_GT(r.metrics().tokens_trimmed, 0u);
}

TEST_F(LoopSeams, TrimThatChangesNothingSaysNothing)
{
    script({scripted_round("end")});
    hooks.trim = [](transcript t) { return t; };
    go(make(agent_options().hooks(hooks)));
    EXPECT_EQ(seen.count("loop:trim"), 0u);
}

TEST_F(LoopSeams, HaltsOfEverySeamHalt)
{
    const auto error_of = [this](run_hooks h) {
        script({scripted_round("t").call("1", "a"), scripted_round("end")});
        return go(make(agent_options().hooks(std::move(h)).tool(any_tool("a", fine)))).error().value_or("none");
    };
    run_hooks h;
    h.trim = [](transcript) -> transcript { throw halt_error("trim.rule"); };
    EXPECT_EQ(error_of(h), "halt:trim.rule");
    h = run_hooks();
    h.assemble = [](transcript) -> transcript { throw halt_error("assemble.rule"); };
    EXPECT_EQ(error_of(h), "halt:assemble.rule");
    h = run_hooks();
    h.on_tool_call = [](const tool_call&) { throw halt_error("call.rule"); };
    EXPECT_EQ(error_of(h), "halt:call.rule");
    h = run_hooks();
    h.on_tool_result = [](tool_report) { throw halt_error("result.rule"); };
    EXPECT_EQ(error_of(h), "halt:result.rule");
    h = run_hooks();
    h.on_text = [](const std::string&) { throw halt_error("text.rule"); };
    EXPECT_EQ(error_of(h), "halt:text.rule");
    h = run_hooks();
    h.flush = [](transcript) { throw halt_error("flush.rule"); };
    EXPECT_EQ(error_of(h), "halt:flush.rule");
}

TEST_F(LoopSeams, K45_HooksThatThrowDoNotTouchTheRun)
{
    script({scripted_round().call("1", "a"), scripted_round("end")});
    hooks.on_tool_call = [](const tool_call&) { throw std::runtime_error("x"); };
    hooks.on_text = [](const std::string&) { throw std::runtime_error("x"); };
    hooks.on_llm_result = [](llm_report) { throw std::runtime_error("x"); };
    hooks.on_tool_result = [](tool_report) { throw std::runtime_error("x"); };
    hooks.flush = [](transcript) { throw std::runtime_error("x"); };
    const run_result r = go(make(agent_options().hooks(hooks).tool(any_tool("a", fine))));
    EXPECT_EQ(r.outcome(), run_outcome::completed);
    EXPECT_THAT(sources, ElementsAre("onLlmResult", "callback:onToolCall", "onToolResult", "onLlmResult", "callback:onText", "trim-flush"));
}

TEST_F(LoopSeams, AnOnErrorThatThrowsIsOnlyLogged)
{
    script({scripted_round().error(provider_error(errc::provider_failed, "down", false))});
    std::vector<std::string> lines;
    hooks.on_error = [](const error_report&) { throw std::runtime_error("x"); };
    const run_result r = go(make(agent_options().hooks(hooks).log(log_sink([&](log_level, std::string_view l) { lines.emplace_back(l); }))));
    EXPECT_EQ(r.error(), "down");
    EXPECT_THAT(lines, ElementsAre("[Loop] on_error threw: x"));
}

awaitable<void> journal(std::vector<std::string>* log, std::string line)
{
    log->push_back(std::move(line));
    co_return;
}

TEST_F(LoopSeams, SeamsOfASessionComeInOrder)
{
    script({scripted_round().call("1", "a"), scripted_round("end")});
    std::vector<std::string> log;
    hooks.before_model = [&](transcript t) { return journal(&log, "model " + std::to_string(t.size())); };
    hooks.before_tool = [&](tool_call c) { return journal(&log, "before " + c.id); };
    hooks.after_tool = [&](tool_report t) { return journal(&log, "after " + t.call.id + " " + t.result.output); };
    hooks.on_commit = [&](commit_point p) {
        return journal(&log, std::string(p.last ? "last " : "commit ") + std::to_string(p.messages.size()) + " " + p.stop_reason);
    };
    go(make(agent_options().hooks(hooks).tool(any_tool("a", fine))));
    EXPECT_THAT(log, ElementsAre("model 1", "before 1", "after 1 ok", "commit 3 tool_use", "model 3", "last 4 end_turn"));
}

class probe final : public store_probe {
public:
    awaitable<std::string> put(std::string content) override
    {
        kept = std::move(content);
        co_return "id7";
    }
    awaitable<std::optional<std::string>> get(std::string id) override
    {
        std::optional<std::string> out;
        if (id == "id7" && works) out = kept;
        co_return out;
    }
    awaitable<void> remove(std::string) override
    {
        removed = true;
        co_return;
    }
    std::string kept;
    bool works = true, removed = false;
};

TEST_F(LoopSeams, K46_ValidateNeverThrows)
{
    script({scripted_round().error(provider_error(errc::provider_failed, "down", false))});
    probe store;
    store.works = false;
    const agent a = make(agent_options().tool(tool()).tool(any_tool("a", fine)).tool(any_tool("a", fine)).tool(tool()));
    const validation_report v = rt::complete(context, a.validate(&store));
    EXPECT_FALSE(v.provider_ok);
    EXPECT_EQ(v.provider_error, "down");
    EXPECT_FALSE(v.store_ok);
    EXPECT_FALSE(v.tools_ok);
    EXPECT_THAT(v.tool_errors, SizeIs(3));
    EXPECT_EQ(v.to_json()["store"]["skipped"].as_bool(), false);
}

TEST_F(LoopSeams, ValidateThatIsWell)
{
    script({scripted_round("ok")});
    probe store;
    const validation_report v = rt::complete(context, make(agent_options().tool(any_tool("a", fine))).validate(&store));
    EXPECT_TRUE(v.ok()) << v.to_json().dump();
    EXPECT_TRUE(store.removed);
    EXPECT_EQ(shape(model_->requests()[0].messages).front(), "user:respond with ok");
    script({scripted_round("ok")});
    EXPECT_EQ(rt::complete(context, make().validate()).to_json().dump(), R"({"provider":{"ok":true},"store":{"ok":true,"skipped":true},"tools":{"ok":true}})");
}

TEST_F(LoopSeams, UnusableToolsAreRefusedBeforeTheRun)
{
    script({scripted_round("ok")});
    EXPECT_THROW(make(agent_options().tool(tool())).start("hi"), validation_error);
    EXPECT_THROW(make(agent_options().tool(any_tool("a", fine)).tool(any_tool("a", fine))).start("hi"), validation_error);
    EXPECT_THROW(agent(context.get_executor(), nullptr), validation_error);
}

}  // namespace loop_seams_test
}  // namespace
