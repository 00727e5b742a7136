#include "agent_fixture.hpp"

#include <reagent/base/utf8.hpp>

namespace {
namespace loop_test {

using namespace reagent;
using agent_test::any_tool;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Loop = agent_test::fixture;

json text_tool(const json&)
{
    return json("s");
}

TEST_F(Loop, K01_FinalAnswer)
{
    script({scripted_round("Hello").usage(5, 3)});
    const run_result r = go(make());
    EXPECT_EQ(r.text(), "Hello");
    EXPECT_FALSE(r.error());
    EXPECT_EQ(r.outcome(), run_outcome::completed);
    EXPECT_EQ(r.usage().input, 5u);
    EXPECT_THAT(shape(r.messages()), ElementsAre("user:hi", "assistant:Hello"));
    EXPECT_THAT(seen.types(), ElementsAre("start", "text", "done"));
    EXPECT_EQ(seen.last("loop:start")["messageCount"].get_int64(), 1);
    EXPECT_EQ(seen.last("loop:done")["text"].as_string(), "Hello");
    EXPECT_TRUE(seen.last("loop:done").find("usage") != nullptr);
    EXPECT_EQ(seen.text, "Hello");
}

TEST_F(Loop, ResultAsJsonHasTheSpecifiedKeys)
{
    script({scripted_round("Hello").usage(5, 3)});
    const json j = go(make()).to_json();
    EXPECT_EQ(j["outcome"].as_string(), "completed");
    EXPECT_TRUE(j["error"].is_null());
    EXPECT_EQ(j["toolCalls"].dump(), "[]");
    EXPECT_EQ(j["msgs"].size(), 2u);
    EXPECT_EQ(j["stopReason"].as_string(), "end_turn");
    EXPECT_EQ(j["metrics"]["turns"].get_int64(), 1);
    EXPECT_EQ(j.find("partialText"), nullptr);
}

TEST_F(Loop, K02_SystemMessage)
{
    script({scripted_round("ok")});
    const run_result r = go(make(agent_options().system("S")));
    EXPECT_THAT(shape(model_->requests()[0].messages), ElementsAre("system:S", "user:hi"));
    EXPECT_THAT(shape(r.messages()), ElementsAre("system:S", "user:hi", "assistant:ok"));
}

TEST_F(Loop, K03_CallsRunInOrderAndTheTranscriptPairsThem)
{
    script({scripted_round().call("a", "x").call("b", "y"), scripted_round("done")});
    std::vector<std::string> order;
    const run_result r = go(make(agent_options()
                                     .tool_concurrency(1)
                                     .tool(any_tool("x",
                                                    [&](const json&) {
                                                        order.push_back("a");
                                                        return json("1");
                                                    }))
                                     .tool(any_tool("y", [&](const json&) {
                                         order.push_back("b");
                                         return json("2");
                                     }))));
    EXPECT_THAT(order, ElementsAre("a", "b"));
    EXPECT_THAT(shape(r.messages()), ElementsAre("user:hi", "assistant:[a][b]", "tool:1", "tool:2", "assistant:done"));
    EXPECT_EQ(r.metrics().turns, 2u);
    EXPECT_EQ(r.metrics().tool_calls, 2u);
    EXPECT_THAT(seen.types(), ElementsAre("start", "tool_call", "tool_call", "tool_result", "tool_result", "text", "done"));
}

TEST_F(Loop, K04_ValuesAndStrings)
{
    script({scripted_round().call("a", "x").call("b", "y"), scripted_round("done")});
    const run_result r = go(make(agent_options().tool(any_tool("x", [](const json&) { return json::object().set("t", 22); })).tool(any_tool("y", text_tool))));
    EXPECT_EQ(r.messages()[2]->text(), R"({"t":22})");
    EXPECT_EQ(r.messages()[3]->text(), "s");
}

TEST_F(Loop, K05_UnknownTool)
{
    script({scripted_round().call("a", "ghost"), scripted_round("done")});
    int told = 0;
    run_hooks hooks;
    hooks.on_tool_result = [&](tool_report) { ++told; };
    const run_result r = go(make(agent_options().hooks(hooks)));
    EXPECT_EQ(r.messages()[2]->text(), "[Loop] Unknown tool: ghost");
    EXPECT_FALSE(r.error());
    EXPECT_EQ(told, 0);
    EXPECT_EQ(seen.count("loop:tool_call"), 0u);
    EXPECT_EQ(seen.last("loop:tool_result")["error"].as_string(), "[Loop] Unknown tool: ghost");
}

TEST_F(Loop, K06_ToolThrows)
{
    script({scripted_round().call("a", "x"), scripted_round("done")});
    std::string told;
    run_hooks hooks;
    hooks.on_tool_result = [&](tool_report t) { told = t.result.code + ": " + t.result.error; };
    const run_result r = go(make(agent_options().hooks(hooks).tool(any_tool("x", [](const json&) -> json { throw std::runtime_error("broke"); }))));
    EXPECT_EQ(r.messages()[2]->text(), "[Loop] Tool error: broke");
    EXPECT_EQ(told, "tool_error: broke");
}

TEST_F(Loop, K07_ProviderErrorIsAResult)
{
    script({scripted_round().error(provider_error(errc::provider_failed, "API down", false))});
    std::string source;
    run_hooks hooks;
    hooks.on_error = [&](const error_report& e) { source = e.source; };
    const run_result r = go(make(agent_options().hooks(hooks)));
    EXPECT_EQ(r.outcome(), run_outcome::failed);
    EXPECT_EQ(r.error(), "API down");
    EXPECT_EQ(r.text(), "");
    EXPECT_EQ(source, "provider");
    EXPECT_THAT(seen.types(), ElementsAre("start", "error", "done"));
    EXPECT_THAT(shape(r.messages()), ElementsAre("user:hi"));
}

TEST_F(Loop, K08_TextOfAnEarlierRoundIsKept)
{
    script({scripted_round("one").call("a", "x"), scripted_round().error(provider_error(errc::provider_failed, "gone", false))});
    const run_result r = go(make(agent_options().tool(any_tool("x", text_tool))));
    EXPECT_EQ(r.text(), "one");
    EXPECT_EQ(r.error(), "gone");
}

TEST_F(Loop, Case_A9_ACutAnswerFailsTheRunAndItsTextIsKeptOutsideTheTranscript)
{
    script({scripted_round("Hello there").deltas(2).error(provider_error(errc::stream_truncated, "cut", true))});
    const run_result r = go(make());
    EXPECT_EQ(r.outcome(), run_outcome::failed);
    EXPECT_EQ(r.error(), "cut");
    ASSERT_TRUE(r.partial_text());
    EXPECT_EQ(*r.partial_text(), seen.text);
    EXPECT_FALSE(r.partial_text()->empty());
    EXPECT_THAT(r.messages(), SizeIs(1));
}

TEST_F(Loop, K24_TruncatedRoundRunsNoTool)
{
    script({scripted_round("par").call("a", "x").stop("max_tokens")});
    int ran = 0, metered = 0;
    run_hooks hooks;
    hooks.on_llm_result = [&](llm_report l) { metered += l.stop_reason == "max_tokens" ? 1 : 0; };
    const run_result r = go(make(agent_options().hooks(hooks).tool(any_tool("x", [&](const json&) {
        ++ran;
        return json();
    }))));
    EXPECT_EQ(r.error(), "truncated:max_tokens");
    EXPECT_EQ(r.outcome(), run_outcome::incomplete);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(metered, 1);
    EXPECT_THAT(shape(r.messages()), ElementsAre("user:hi", "assistant:par"));
    EXPECT_THAT(seen.types(), ElementsAre("start", "truncated", "done"));
    EXPECT_EQ(seen.last("loop:truncated")["droppedToolCalls"].get_int64(), 1);
    EXPECT_EQ(seen.last("loop:done")["droppedToolCalls"].get_int64(), 1);
    EXPECT_EQ(seen.last("loop:done")["terminal"].as_string(), "truncated");
}

TEST_F(Loop, K25_RefusalAndContextExceededRunNoTool)
{
    for (const std::string token : {"refusal", "context_exceeded"}) {
        script({scripted_round().call("a", "x").stop(token)});
        int ran = 0;
        const run_result r = go(make(agent_options().tool(any_tool("x", [&](const json&) {
            ++ran;
            return json();
        }))));
        EXPECT_EQ(r.error(), token);
        EXPECT_EQ(r.outcome(), run_outcome::incomplete);
        EXPECT_EQ(r.stop_reason(), token);
        EXPECT_EQ(ran, 0);
    }
}

TEST_F(Loop, K26_UnknownStopReasonIsKept)
{
    script({scripted_round("t").stop("brand_new")});
    const run_result r = go(make());
    EXPECT_FALSE(r.error());
    EXPECT_EQ(r.stop_reason(), "brand_new");
}

TEST_F(Loop, K27_PauseResumes)
{
    const provider_blocks blocks("scripted", "m", json::parse_or_throw(R"([{"type":"thinking"}])", "blocks"));
    script({scripted_round("s").stop("pause_turn").blocks(blocks), scripted_round("end")});
    const run_result r = go(make());
    ASSERT_THAT(model_->requests(), SizeIs(2));
    const message_ptr last = model_->requests()[1].messages.back();
    EXPECT_EQ(last->text(), "s");
    ASSERT_NE(last->blocks(), nullptr);
    EXPECT_EQ(*last->blocks(), blocks);
    EXPECT_EQ(seen.count("loop:resume"), 1u);
    EXPECT_EQ(r.text(), "end");
}

TEST_F(Loop, Case_A11_ACallOfACutAnswerNeverRuns)
{
    script({scripted_round("Hello").call("a", "x").error(provider_error(errc::stream_truncated, "cut", true))});
    int ran = 0;
    const run_result r = go(make(agent_options().tool(any_tool("x", [&](const json&) {
        ++ran;
        return json();
    }))));
    EXPECT_EQ(r.outcome(), run_outcome::failed);
    EXPECT_EQ(ran, 0);
    EXPECT_THAT(shape(r.messages()), ElementsAre("user:hi"));
}

TEST_F(Loop, Case_B5_IntegersReachTheToolAndTheNextRequestAsTheyCame)
{
    const std::string numbers = R"({"a":9007199254740993,"b":9223372036854775807,"c":18446744073709551615,"d":1e400,"e":-0.0})";
    const json args = json::parse_or_throw(numbers, "args");
    script({scripted_round().call("a", "x", args), scripted_round("end")});
    std::string got;
    std::optional<std::int64_t> b;
    std::optional<std::uint64_t> c;
    const run_result r = go(make(agent_options().tool(any_tool("x", [&](const json& a) {
        got = a.dump();
        b = a["b"].get_int64();
        c = a["c"].get_uint64();
        return a;
    }))));
    EXPECT_EQ(got, numbers);
    EXPECT_EQ(b, INT64_MAX);
    EXPECT_EQ(c, UINT64_MAX);
    ASSERT_THAT(model_->requests(), SizeIs(2));
    const transcript& sent = model_->requests()[1].messages;
    ASSERT_THAT(sent, SizeIs(3));
    EXPECT_EQ(sent[1]->calls().front()->arguments.dump(), numbers);
    EXPECT_EQ(sent[2]->text(), numbers) << "what a tool gives back keeps its numbers too";
    EXPECT_EQ(seen.last("loop:tool_call")["args"].dump(), numbers);
}

TEST_F(Loop, Case_B6_WhatAToolSaysBecomesWellFormedText)
{
    using namespace std::string_literals;
    script({scripted_round().call("a", "text").call("b", "value").call("c", "fails"), scripted_round("end")});
    const std::string bad = "lone \xED\xA0\xBD, NUL \0, raw \xFF, U+FFFE \xEF\xBF\xBE end"s;
    const run_result r =
        go(make(agent_options()
                    .tool(any_tool("text", [&](const json&) { return json(bad); }))
                    .tool(any_tool("value", [&](const json&) { return json::object().set("text", bad).set(bad, json::parse_or_throw("\"\\ud83d\"", "test")); }))
                    .tool(any_tool("fails", [&](const json&) -> json { throw std::runtime_error("what \xFF is this"); }))));
    ASSERT_THAT(model_->requests(), SizeIs(2));
    ASSERT_THAT(model_->requests()[1].messages, SizeIs(5));
    for (std::size_t i = 2; i < 5; ++i) {
        const std::string text = model_->requests()[1].messages[i]->text();
        EXPECT_TRUE(is_utf8(text)) << i;
        EXPECT_EQ(text, repair_utf8(text)) << i;
    }
    std::string expected = repair_utf8(bad);
    std::erase(expected, '\0');
    EXPECT_EQ(model_->requests()[1].messages[2]->text(), expected) << "the rest of the text is as it was";
    EXPECT_EQ(model_->requests()[1].messages[4]->text(), "[Loop] Tool error: what \xEF\xBF\xBD is this");
    EXPECT_EQ(r.outcome(), run_outcome::completed);
}

TEST_F(Loop, Case_B4_CutArgumentsAreAToolErrorThatNamesToolAndPosition)
{
    malformed_tool_call bad;
    bad.name = "find";
    bad.error = "unexpected end";
    bad.offset = 12;
    attempted_call a;
    a.call = tool_call("a", "find", json("{\"path\":\"/t"));
    a.malformed = true;
    a.offset = 12;
    script({scripted_round().malformed(bad, {a}).stop("tool_use"), scripted_round("sorry")});
    int ran = 0;
    const run_result r = go(make(agent_options().tool(any_tool("find", [&](const json&) {
        ++ran;
        return json();
    }))));
    EXPECT_EQ(r.outcome(), run_outcome::completed);
    EXPECT_EQ(r.text(), "sorry");
    EXPECT_EQ(ran, 0);
    ASSERT_THAT(r.messages(), SizeIs(4));
    ASSERT_THAT(r.messages()[1]->calls(), SizeIs(1));
    EXPECT_EQ(r.messages()[2]->text(), "[Loop] Tool error: find: arguments are not JSON at byte 12");
    EXPECT_EQ(r.messages()[1]->calls().front()->arguments.dump(), "{}");
    EXPECT_FALSE(r.malformed());
}

TEST_F(Loop, Case_B4_ArgumentsCutByTheOutputLimitEndTheRunAndRunNothing)
{
    malformed_tool_call bad;
    bad.name = "find";
    attempted_call a;
    a.call = tool_call("a", "find", json::object());
    a.malformed = true;
    script({scripted_round("par").malformed(bad, {a}).stop("max_tokens")});
    int ran = 0;
    const run_result r = go(make(agent_options().tool(any_tool("find", [&](const json&) {
        ++ran;
        return json();
    }))));
    EXPECT_EQ(r.error(), "truncated:max_tokens");
    EXPECT_EQ(ran, 0);
    EXPECT_TRUE(r.malformed());
}

TEST_F(Loop, K30_StopInsideTheFirstOfTwoCalls)
{
    script({scripted_round("t").call("a", "x").call("b", "x")});
    int ran = 0, flushed = 0;
    run_hooks hooks;
    hooks.flush = [&](transcript) { ++flushed; };
    reagent::run* current = nullptr;
    const agent a = make(agent_options().hooks(hooks).tool_concurrency(1).tool(any_tool("x", [&](const json&) {
        ++ran;
        current->stop();
        return json("first");
    })));
    reagent::run r = a.start("hi");
    current = &r;
    const run_result result = go(r);
    EXPECT_FALSE(result.error());
    EXPECT_EQ(result.outcome(), run_outcome::stopped);
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(flushed, 1);
    EXPECT_EQ(result.text(), "t");
    EXPECT_THAT(shape(result.messages()), ElementsAre("user:hi", "assistant:t[a][b]", "tool:first", "tool:[stopped]"));
    EXPECT_TRUE(seen.last("loop:done")["stopped"].as_bool());
}

TEST_F(Loop, Case_B7_TheFlushOfAStoppedRunGetsASealedHistory)
{
    script({scripted_round("t").call("a", "x").call("b", "x")});
    std::vector<std::string> flushed;
    run_hooks hooks;
    hooks.flush = [&](const transcript& m) { flushed = shape(m); };
    reagent::run* current = nullptr;
    const agent a = make(agent_options().hooks(hooks).tool_concurrency(1).tool(any_tool("x", [&](const json&) {
        current->stop();
        return json("first");
    })));
    reagent::run r = a.start("hi");
    current = &r;
    go(r);
    EXPECT_THAT(flushed, ElementsAre("user:hi", "assistant:t[a][b]", "tool:first", "tool:[stopped]"));
}

TEST_F(Loop, StopBeforeTheStartStartsNothing)
{
    script({scripted_round("t")});
    reagent::run r = make().start("hi");
    r.stop();
    const run_result result = go(r);
    EXPECT_EQ(result.outcome(), run_outcome::stopped);
    EXPECT_THAT(model_->requests(), IsEmpty());
}

TEST_F(Loop, StopDuringTheModelCallLetsAFinalAnswerComplete)
{
    reagent::run* current = nullptr;
    script({});
    model_->add(scripted_round("answer").when([&](const generate_request&) {
        current->stop();
        return true;
    }));
    reagent::run r = make().start("hi");
    current = &r;
    EXPECT_EQ(go(r).outcome(), run_outcome::completed);
}

TEST_F(Loop, K31_AHaltInFlushDuringAStop)
{
    script({scripted_round("t").call("a", "x")});
    run_hooks hooks;
    hooks.flush = [&](transcript) { throw halt_error("fs.writeScope"); };
    reagent::run* current = nullptr;
    const agent a = make(agent_options().hooks(hooks).tool(any_tool("x", [&](const json&) {
        current->stop();
        return json("first");
    })));
    reagent::run r = a.start("hi");
    current = &r;
    const run_result result = go(r);
    EXPECT_EQ(result.error(), "halt:fs.writeScope");
    EXPECT_EQ(result.outcome(), run_outcome::halted);
    EXPECT_TRUE(seen.last("loop:done")["halted"].as_bool());
}

TEST_F(Loop, FinishToolEndsTheRunWithoutAnotherModelCall)
{
    script({scripted_round("thinking aloud").call("a", "finish", json::object().set("answer", "42"))});
    int flushed = 0;
    std::string told;
    run_hooks hooks;
    hooks.flush = [&](transcript) { ++flushed; };
    hooks.on_text = [&](const std::string& t) { told = t; };
    const run_result r = go(make(agent_options().hooks(hooks).tool(any_tool("finish", [](const json& a) { return json(a["answer"]); }))));
    EXPECT_EQ(r.outcome(), run_outcome::completed);
    EXPECT_EQ(r.text(), "42");
    EXPECT_EQ(told, "42");
    EXPECT_EQ(flushed, 1);
    EXPECT_THAT(model_->requests(), SizeIs(1));
    EXPECT_THAT(shape(r.messages()), ElementsAre("user:hi", "assistant:thinking aloud[a]", "tool:42"));
}

TEST_F(Loop, EncodedPrefixIsReusedFromRoundToRound)
{
    class counting final : public provider {
    public:
        awaitable<generate_result> generate(generate_request request) override
        {
            request.prefix->encode(this, message_items(&encode), request.messages);
            reused.push_back(request.prefix->reused());
            generate_result r;
            r.stop_reason = "end_turn";
            r.text = "t";
            if (reused.size() < 4) {
                r.stop_reason = "tool_use";
                r.tool_calls.emplace_back("c" + std::to_string(reused.size()), "x", json::object());
            }
            co_return r;
        }
        static void encode(const void*, std::span<const message_ptr> so_far, std::size_t at, std::string& out) { out += so_far[at]->to_json().dump(); }
        std::vector<std::size_t> reused;
    };
    auto p = std::make_shared<counting>();
    const agent a(context.get_executor(), p, agent_options().tool(any_tool("x", text_tool)));
    EXPECT_EQ(go(a).outcome(), run_outcome::completed);
    // Each round adds an assistant message and a result; all before is reused.
    EXPECT_THAT(p->reused, ElementsAre(0u, 1u, 3u, 5u));
}

TEST_F(Loop, ToolListIsSharedAcrossRounds)
{
    script({scripted_round().call("a", "x"), scripted_round("t")});
    go(make(agent_options().tool(any_tool("x", text_tool))));
    EXPECT_EQ(model_->requests()[0].tools, model_->requests()[1].tools);
}

}  // namespace loop_test
}  // namespace
