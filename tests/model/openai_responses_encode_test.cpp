#include <reagent/base/error.hpp>
#include <reagent/base/utf8.hpp>
#include <reagent/model/encoded_prefix.hpp>
#include <reagent/model/openai_responses_codec.hpp>
#include <reagent/model/provider_error.hpp>

#include <gtest/gtest.h>

namespace {
namespace openai_responses_encode_test {

using namespace reagent;

openai_responses_codec_options of_model(std::string model = "m")
{
    openai_responses_codec_options o;
    o.model = std::move(model);
    return o;
}

json body_of(const openai_responses_codec& codec, const generate_request& request)
{
    std::string storage;
    const call_plan plan = codec.plan(request);
    return json::parse_or_throw(codec.encode(request, plan, true, codec.ladder(plan, {}).members(), storage).body, "body");
}

generate_request asking(std::string text)
{
    generate_request r({message::user(std::move(text))});
    r.options.stream = false;
    return r;
}

/// The input items that these messages become.
std::string items_of(const char* messages, openai_responses_codec_options options = of_model())
{
    const openai_responses_codec codec(std::move(options));
    return body_of(codec, generate_request(transcript_from_json(json::parse_or_throw(messages, "test"))))["input"].dump();
}

TEST(OpenaiResponsesEncode, MessagesBecomeItems)
{
    class row {
    public:
        const char *messages, *items;
    };
    for (
        const row& r : std::vector<row>{
            {R"([{"role":"user","content":null},{"role":"user","content":""}])", R"([{"role":"user","content":[{"type":"input_text","text":""}]}])"},
            {R"([{"role":"user","content":[]},{"role":"developer","content":"d"}])",
             R"([{"role":"user","content":[]},{"role":"developer","content":[{"type":"input_text","text":"d"}]}])"},
            {R"([{"role":"user","content":[{"type":"text","text":"t","x":1},{"type":"input_file","file_id":"f","n":1.0},{"type":"image","source":{"kind":"url","url":"u"},"detail":"low"}]}])",
             R"([{"role":"user","content":[{"type":"input_text","text":"t"},{"type":"input_file","file_id":"f","n":1.0},{"type":"input_image","image_url":"u","detail":"low"}]}])"},
            {R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}])",
             R"([{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}])"},
            {R"([{"role":"system","content":"s"},{"role":"assistant","content":null},{"role":"assistant","content":""},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"r"}]}])",
             R"([{"role":"assistant","content":[{"type":"output_text","text":""}]},{"role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"r"}]}])"},
            {R"([{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"q\": "}},{"id":"b","function":{"name":"g"}}]}])",
             R"([{"type":"function_call","call_id":"a","name":"f","arguments":"{\"q\": "},{"type":"function_call","call_id":"b","name":"g","arguments":"{}"}])"},
            {R"([{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}],"foo":1}])",
             R"([{"type":"function_call_output","call_id":"a","output":"x\ny"}])"},
        })
        EXPECT_EQ(items_of(r.messages), r.items);
    for (const char* refused : {R"([{"role":"assistant","content":[{"type":"image","source":{"kind":"url","url":"u"}}]}])",
                                R"([{"role":"system","content":[{"type":"image","source":{"kind":"url","url":"u"}}]}])",
                                R"([{"role":"system","content":[{"type":"input_file","file_id":"f"}]}])",
                                R"([{"role":"tool","tool_call_id":"a","content":[{"type":"image","source":{"kind":"url","url":"u"}}]}])"})
        EXPECT_THROW(items_of(refused), validation_error) << refused;
}

TEST(OpenaiResponsesEncode, BlocksAreReplayedToTheModelThatMadeThem)
{
    const auto replayed = [](const char* provider, const char* model, const char* block, const char* rest, bool store = false) {
        openai_responses_codec_options o = of_model();
        o.store = store;
        const std::string messages = std::string(R"([{"role":"assistant",)") + rest + R"(,"providerBlocks":{"provider":")" + provider + R"(","model":")" +
            model + R"(","blocks":[)" + block + "]}}]";
        const std::string items = items_of(messages.c_str(), o);
        return items.starts_with("[" + std::string(block) + ",{");
    };
    const char* const sealed = R"({"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAA==","z":[1.0,{"a":null}]})";
    const char* const open = R"({"type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}]})";
    const char* const bare = R"({"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":""})";
    const char* const said = R"("content":"a")";
    const char* const calls = R"("content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}])";
    for (const char* rest : {said, calls}) {
        EXPECT_TRUE(replayed("openai-responses", "m", sealed, rest));
        EXPECT_TRUE(replayed("openai-responses", "m", open, rest));
        EXPECT_TRUE(replayed("openai-responses", "m", R"({"type":"compaction","id":"c"})", rest));
        EXPECT_FALSE(replayed("openai-responses", "m", bare, rest)) << "the service has not kept what it would name";
        EXPECT_TRUE(replayed("openai-responses", "m", bare, rest, true)) << "and here it has";
        EXPECT_FALSE(replayed("openai-responses", "m2", sealed, rest));
        EXPECT_FALSE(replayed("openai", "m", sealed, rest));
    }
    EXPECT_EQ(
        items_of(R"([{"role":"assistant","content":null,"providerBlocks":{"provider":"openai-responses","model":"m","blocks":[{"type":"compaction"}]}}])"),
        "[]")
        << "nothing follows it";
}

TEST(OpenaiResponsesEncode, ReasoningAndWhatItBringsAlong)
{
    class row {
    public:
        const char *model, *thinking, *mode, *reasoning;
        bool include;
    };
    for (const row& r : std::vector<row>{
             {"m", nullptr, nullptr, nullptr, false},
             {"gpt-4o-mini", nullptr, nullptr, nullptr, false},
             {"gpt-5-mini-2025-08-07", nullptr, nullptr, nullptr, true},
             {"m", R"({"effort":"low","summary":"auto"})", nullptr, R"({"effort":"low","summary":"auto"})", true},
             {"m", R"("high")", nullptr, R"({"effort":"high"})", true},
             {"m", "{}", nullptr, "{}", true},
             {"m", "false", nullptr, nullptr, false},
             {"m", nullptr, "on", R"({"effort":"medium"})", true},
             {"m", nullptr, "off", R"({"effort":"none"})", true},
         }) {
        openai_responses_codec_options o = of_model(r.model);
        if (r.thinking != nullptr) o.thinking = json::parse_or_throw(r.thinking, "test");
        if (r.mode != nullptr) o.mode = std::string_view(r.mode) == "on" ? thinking_mode::on : thinking_mode::off;
        const openai_responses_codec codec(o);
        const json body = body_of(codec, asking("hi"));
        EXPECT_EQ(body.find("reasoning") == nullptr ? "" : body["reasoning"].dump(), r.reasoning == nullptr ? "" : r.reasoning) << r.model;
        EXPECT_EQ(body["include"].dump(), r.include ? R"(["reasoning.encrypted_content"])" : "null") << r.model;
    }
    // The ladder of `off`, and the plain request at its end, which a model that does not reason must be able to take.
    openai_responses_codec_options o = of_model();
    o.mode = thinking_mode::off;
    const openai_responses_codec codec(o);
    const generate_request request = asking("hi");
    const call_plan plan = codec.plan(request);
    thinking_ladder ladder = codec.ladder(plan, {});
    std::vector<std::string> bodies;
    std::string storage;
    do {
        bodies.emplace_back(codec.encode(request, plan, true, ladder.members(), storage).body);
    } while (ladder.refused(400) == thinking_ladder::verdict::resend);
    ASSERT_EQ(bodies.size(), 3U);
    EXPECT_NE(bodies[1].find(R"("reasoning":{"effort":"minimal"},"include")"), std::string::npos);
    EXPECT_EQ(bodies[2], R"({"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}],"store":false})");
}

TEST(OpenaiResponsesEncode, TheWholeBody)
{
    openai_responses_codec_options o = of_model();
    o.temperature = 0.5;
    o.max_tokens = 100;
    o.store = true;
    o.members = json::parse_or_throw(R"({"top_p":0.50,"text":{"verbosity":"low"}})", "test");
    o.key = secret("sk-1");
    const openai_responses_codec codec(o);
    generate_request request({message::system("a"), message::user("hi"), message::system(""), message::system("b")});
    auto tools = std::make_shared<std::vector<tool_schema>>();
    tools->emplace_back("now", "", json());
    tools->emplace_back("find", "Look", json::object());
    request.tools = tools;
    request.options.tool_choice = "required";
    std::string storage;
    const wire_request wire = codec.encode(request, codec.plan(request), true, {}, storage);
    EXPECT_EQ(
        wire.body,
        R"({"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}],"instructions":"a\n\nb","temperature":0.5,"max_output_tokens":100,)"
        R"("tools":[{"type":"function","name":"now","parameters":{"type":"object","properties":{}},"strict":false},)"
        R"({"type":"function","name":"find","description":"Look","parameters":{},"strict":false}],"tool_choice":"required","top_p":0.50,"text":{"verbosity":"low"},)"
        R"("store":true,"stream":true})");
    EXPECT_EQ(wire.target->text(), "https://api.openai.com/v1/responses");
    EXPECT_EQ(wire.header_lines, "Content-Type: application/json\r\nAuthorization: Bearer sk-1\r\n");
    EXPECT_EQ(json::parse_or_throw(codec.encode(request, codec.plan(request), false, {}, storage).body, "body").find("temperature"), nullptr);
}

TEST(OpenaiResponsesEncode, WhatTheServiceWouldReadOrDoBesideTheRequestIsRefused)
{
    for (const char* member : {"model", "input", "instructions", "temperature", "max_output_tokens", "tools", "tool_choice", "store", "reasoning", "include",
                               "stream", "background", "conversation", "previous_response_id", "prompt"}) {
        openai_responses_codec_options o = of_model();
        o.members = json::object().set(member, 1);
        try {
            const openai_responses_codec refused(o);
            FAIL() << member;
        } catch (const validation_error& e) {
            EXPECT_EQ(e.message(), "[OpenAIResponsesProvider] the body member " + std::string(member) + " is set by the provider");
        }
    }
}

TEST(OpenaiResponsesEncode, ToolChoiceIsCheckedBeforeAnything)
{
    const openai_responses_codec codec(of_model());
    generate_request request = asking("hi");
    request.options.tool_choice = "banana";
    EXPECT_THROW(static_cast<void>(codec.plan(request)), provider_error);
    request.options.tool_choice = "auto";
    EXPECT_EQ(body_of(codec, request).find("tool_choice"), nullptr) << "without tools nothing is chosen";
}

TEST(OpenaiResponsesEncode, Case_B5_ReplayedCallsKeepTheirNumbers)
{
    const openai_responses_codec codec(of_model());
    for (const std::string number : {"9007199254740993", "9223372036854775807", "18446744073709551615", "1e400", "-0.0"}) {
        const std::string object = "{\"id\":" + number + "}";
        std::vector<tool_call> calls;
        calls.emplace_back("a", "get", json::parse_or_throw(object, "test"));
        json blocks = json::array();
        blocks.push_back(json::parse_or_throw(R"({"type":"compaction","x":)" + number + "}", "test"));
        const generate_request request({message::assistant("", calls, provider_blocks("openai-responses", "m", std::move(blocks)))});
        std::string storage;
        const std::string_view body = codec.encode(request, codec.plan(request), true, {}, storage).body;
        EXPECT_NE(body.find(R"({"type":"compaction","x":)" + number + "}"), std::string_view::npos) << body;
        EXPECT_EQ(json::parse_or_throw(body, "body")["input"][1]["arguments"].as_string(), object);
    }
}

TEST(OpenaiResponsesEncode, Case_B6_IllFormedTextIsRepairedWhenTheRequestIsWritten)
{
    const openai_responses_codec codec(of_model());
    using namespace std::string_literals;
    const std::string bad = "lone \xED\xA0\xBD, NUL \0, raw \xFF, U+FFFE \xEF\xBF\xBE end"s;
    std::vector<tool_call> odd;
    odd.emplace_back(bad, bad, json::object().set(bad, bad));
    auto tools = std::make_shared<std::vector<tool_schema>>();
    tools->emplace_back(bad, bad, json::object().set(bad, bad));
    generate_request request({message::system(bad), message::user(bad), message::assistant(bad, odd), message::tool_result(bad, bad)}, tools);
    std::string storage;
    const wire_request wire = codec.encode(request, codec.plan(request), true, {}, storage);
    EXPECT_TRUE(is_utf8(wire.body));
    EXPECT_EQ(wire.body.find('\0'), std::string_view::npos);
    const json body = json::parse_or_throw(wire.body, "body");
    const std::string good = repair_utf8(bad);
    EXPECT_EQ(body["instructions"].as_string(), good);
    EXPECT_EQ(body["input"][0]["content"][0]["text"].as_string(), good);
    EXPECT_EQ(body["input"][1]["content"][0]["text"].as_string(), good);
    EXPECT_EQ(body["input"][2]["name"].as_string(), good);
    EXPECT_EQ(body["input"][2]["call_id"], body["input"][3]["call_id"]);
    EXPECT_EQ(body["input"][3]["output"].as_string(), good);
}

TEST(OpenaiResponsesEncode, APrefixGivesTheSameBody)
{
    const openai_responses_codec codec(of_model());
    encoded_prefix prefix;
    generate_request request({message::system("s"), message::user("hi"), message::assistant("", {tool_call("a", "f", json::object())})});
    for (int round = 0; round < 3; ++round) {
        std::string storage, kept;
        request.prefix = nullptr;
        const std::string expected(codec.encode(request, codec.plan(request), true, {}, storage).body);
        request.prefix = &prefix;
        EXPECT_EQ(codec.encode(request, codec.plan(request), true, {}, kept).body, expected);
        EXPECT_EQ(prefix.reused(), round == 0 ? 0U : request.messages.size() - 1);
        request.messages.push_back(message::tool_result("a", "r"));
    }
}

}  // namespace openai_responses_encode_test
}  // namespace
