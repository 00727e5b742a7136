// Coroutines of the host that take what they are given by const reference: the value lives until they have ended, whoever owned it before.
#include "agent_fixture.hpp"

#include <boost/asio/post.hpp>

namespace {
namespace by_reference_test {

using namespace reagent;
using namespace agent_test;
using ::testing::ElementsAre;

/// Longer than any small buffer, so that a stale reference reads freed memory.
const std::string long_text = "a question that no small string buffer holds, asked twice for good measure";

class ByReference : public fixture {
protected:
    std::vector<std::string> heard;
};

awaitable<void> later()
{
    co_await asio::post(asio::use_awaitable);
}

using log_of = std::vector<std::string>*;

awaitable<policy_verdict> judge(log_of heard, const tool_call& call)
{
    co_await later();
    heard->push_back("policy " + call.arguments["text"].as_string());
    co_return policy_verdict::allow();
}
awaitable<void> note_llm(log_of heard, const llm_report& r)
{
    co_await later();
    heard->push_back("llm " + r.model);
}
awaitable<void> note_tool(log_of heard, const char* what, const tool_report& r)
{
    co_await later();
    heard->push_back(std::string(what) + " " + r.result.output);
}
awaitable<void> note_call(log_of heard, const tool_call& call)
{
    co_await later();
    heard->push_back("before_tool " + call.arguments["text"].as_string());
}
awaitable<transcript> same(log_of heard, const char* what, const transcript& messages)
{
    co_await later();
    heard->push_back(std::string(what) + " " + messages.front()->text());
    co_return messages;
}
awaitable<void> look(log_of heard, const char* what, const transcript& messages)
{
    co_await later();
    heard->push_back(std::string(what) + " " + messages.front()->text());
}
awaitable<void> note_commit(log_of heard, const commit_point& p)
{
    co_await later();
    heard->push_back("commit " + p.messages.front()->text());
}

TEST_F(ByReference, EveryHookOfARun)
{
    json args = json::object().set("text", long_text);
    script({scripted_round().call("c1", "echo", args), scripted_round().text("done")}, "a-model-with-a-name-beyond-any-small-buffer");
    run_hooks hooks;
    const log_of to = &heard;
    hooks.policy = [to](const tool_call& c) { return judge(to, c); };
    hooks.on_llm_result = [to](const llm_report& r) { return note_llm(to, r); };
    hooks.before_tool = [to](const tool_call& c) { return note_call(to, c); };
    hooks.after_tool = [to](const tool_report& r) { return note_tool(to, "after_tool", r); };
    hooks.on_tool_result = [to](const tool_report& r) { return note_tool(to, "on_tool_result", r); };
    hooks.trim = [to](const transcript& m) { return same(to, "trim", m); };
    hooks.assemble = [to](const transcript& m) { return same(to, "assemble", m); };
    hooks.before_model = [to](const transcript& m) { return look(to, "before_model", m); };
    hooks.flush = [to](const transcript& m) { return look(to, "flush", m); };
    hooks.on_commit = [to](const commit_point& p) { return note_commit(to, p); };
    const agent a = make(agent_options().hooks(hooks).tool(any_tool("echo", [](const json& j) { return j["text"]; })));
    const run_result r = go(a, run_request(long_text));
    EXPECT_TRUE(r.completed()) << r.error().value_or("");
    const std::string model = "a-model-with-a-name-beyond-any-small-buffer";
    EXPECT_THAT(heard,
                ElementsAre("trim " + long_text, "assemble " + long_text, "before_model " + long_text, "llm " + model, "policy " + long_text,
                            "before_tool " + long_text, "after_tool " + long_text, "on_tool_result " + long_text, "commit " + long_text, "trim " + long_text,
                            "assemble " + long_text, "before_model " + long_text, "llm " + model, "flush " + long_text, "commit " + long_text));
}

/// Plain hooks by value and by reference still work beside coroutines.
TEST_F(ByReference, PlainHooks)
{
    script({scripted_round().call("c1", "echo", json::object().set("text", long_text)), scripted_round().text("done")});
    run_hooks hooks;
    hooks.policy = [this](tool_call c) {
        heard.push_back(c.arguments["text"].as_string());
        return policy_verdict::allow();
    };
    hooks.assemble = [this](const transcript& m) {
        heard.push_back(m.front()->text());
        return m;
    };
    const agent a = make(agent_options().hooks(hooks).tool(any_tool("echo", [](const json& j) { return j["text"]; })));
    EXPECT_TRUE(go(a, run_request(long_text)).completed());
    EXPECT_THAT(heard, ElementsAre(long_text, long_text, long_text));
}

awaitable<json> say(const json& args, tool_context& context)
{
    co_await later();
    co_return args["text"].as_string() + " of " + context.call_id;
}

TEST_F(ByReference, TheFunctionOfATool)
{
    const tool t = tool::from_check("say", "Says it.", json::object().set("type", "object"), {}, &say);
    tool_context c;
    c.call_id = "c1";
    const tool_result r = rt::complete(context, t.invoke(json::object().set("text", long_text), c));
    EXPECT_EQ(r.output, long_text + " of c1");
}

struct say_args {
    std::string text;
};
BOOST_DESCRIBE_STRUCT(say_args, (), (text))

awaitable<std::string> say_described(const say_args& args)
{
    co_await later();
    co_return args.text;
}

TEST_F(ByReference, TheFunctionOfMakeTool)
{
    const tool t = make_tool("say", "Says it.", &say_described);
    tool_context c;
    const tool_result r = rt::complete(context, t.invoke(json::object().set("text", long_text), c));
    EXPECT_EQ(r.output, long_text);
}

awaitable<human_answer> person(log_of heard, const human_event& event)
{
    co_await later();
    heard->push_back(event.rule + ": " + event.reason);
    co_return human_answer(human_verdict::allow);
}

TEST_F(ByReference, TheHumanChannel)
{
    script({scripted_round().text("done")});
    const log_of to = &heard;
    const agent a = make(agent_options().gate(gate_policy().max_turns(0)).human([to](const human_event& e) { return person(to, e); }));
    EXPECT_TRUE(go(a).completed());
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_TRUE(heard.front().starts_with("limits.maxTurns: ")) << heard.front();
    EXPECT_GT(heard.front().size(), std::string("limits.maxTurns: ").size());
}

}  // namespace by_reference_test
}  // namespace
