#include <reagent/base/error.hpp>
#include <reagent/base/utf8.hpp>
#include <reagent/model/openai_codec.hpp>
#include <reagent/model/provider_error.hpp>

#include <gtest/gtest.h>

namespace {
namespace openai_encode_test {

using namespace reagent;

json body_of(const openai_codec& codec, const generate_request& request)
{
    std::string storage;
    const call_plan plan = codec.plan(request);
    const thinking_ladder ladder = codec.ladder(plan, {});
    return json::parse_or_throw(codec.encode(request, plan, true, ladder.members(), storage).body, "body");
}

generate_request asking(std::string text)
{
    return generate_request({message::user(std::move(text))});
}

tool_list one_tool()
{
    auto tools = std::make_shared<std::vector<tool_schema>>();
    tools->emplace_back("find", "", json());
    return tools;
}

TEST(OpenaiEncode, Case_B6_IllFormedTextIsRepairedWhenTheRequestIsWritten)
{
    const openai_codec codec{openai_codec_options()};
    using namespace std::string_literals;
    const std::string bad = "lone \xED\xA0\xBD, NUL \0, raw \xFF, U+FFFE \xEF\xBF\xBE end"s;
    std::vector<tool_call> calls;
    calls.emplace_back("a", "f", json::object());
    generate_request request({message::user("hi"), message::assistant("", calls), message::tool_result("a", bad)});
    std::string storage;
    const wire_request wire = codec.encode(request, codec.plan(request), true, {}, storage);
    EXPECT_TRUE(is_utf8(wire.body));
    const json body = json::parse_or_throw(wire.body, "body");
    EXPECT_EQ(body["messages"][2]["content"].as_string(), repair_utf8(bad));
    EXPECT_NE(wire.body.find("\\u0000"), std::string_view::npos);
    EXPECT_EQ(wire.body.find('\0'), std::string_view::npos);
    // Whoever said it, and names and ids as well.
    std::vector<tool_call> odd;
    odd.emplace_back(bad, bad, json::object().set(bad, bad));
    const generate_request all({message::system(bad), message::user(bad), message::assistant(bad, odd), message::tool_result(bad, bad)});
    const wire_request every = codec.encode(all, codec.plan(all), true, {}, storage);
    EXPECT_TRUE(is_utf8(every.body));
    EXPECT_EQ(every.body.find('\0'), std::string_view::npos);
    const json written = json::parse_or_throw(every.body, "body");
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(written["messages"][i]["content"].as_string(), repair_utf8(bad)) << i;
    EXPECT_EQ(written["messages"][2]["tool_calls"][0]["id"], written["messages"][3]["tool_call_id"]);
    EXPECT_EQ(written["messages"][2]["tool_calls"][0]["function"]["name"].as_string(), repair_utf8(bad));
    // The same text as a lone surrogate escape on the way in.
    const message_ptr in = message::from_json(json::parse_or_throw(R"({"role":"tool","tool_call_id":"a","content":"\ud83d"})", "test"));
    EXPECT_EQ(in->text(), "\xEF\xBF\xBD");
}

TEST(OpenaiEncode, Case_B5_ReplayedCallsKeepTheirNumbers)
{
    const openai_codec codec{openai_codec_options()};
    for (const std::string number : {"9007199254740993", "9223372036854775807", "18446744073709551615", "1e400", "-0.0"}) {
        std::vector<tool_call> calls;
        calls.emplace_back("a", "get", json::parse_or_throw("{\"id\":" + number + "}", "test"));
        const generate_request request({message::assistant("", calls)});
        EXPECT_EQ(body_of(codec, request)["messages"][0]["tool_calls"][0]["function"]["arguments"].as_string(), "{\"id\":" + number + "}");
    }
}

TEST(OpenaiEncode, UnsetOptionsFallBackToTheInstance)
{
    openai_codec_options o;
    o.temperature = 0.5;
    o.max_tokens = 100;
    o.thinking = json::object().set("type", "enabled");
    const openai_codec codec{o};
    generate_request request = asking("hi");
    EXPECT_EQ(
        body_of(codec, request).dump(),
        R"({"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}],"temperature":0.5,"max_completion_tokens":100,"thinking":{"type":"enabled"},"stream":true,"stream_options":{"include_usage":true}})");
    request.options.temperature = 0.25;
    request.options.max_tokens = 0;
    request.options.thinking = json();
    request.options.stream = false;
    EXPECT_EQ(body_of(codec, request).dump(),
              R"({"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}],"temperature":0.25,"max_completion_tokens":100})");
}

TEST(OpenaiEncode, ToolChoiceIsCheckedBeforeAnything)
{
    const openai_codec codec{openai_codec_options()};
    generate_request request = asking("hi");
    for (const char* bad : {"\"banana\"", "7", "{}", R"({"name":""})", R"({"name":"a","x":1})", "[]", "true"}) {
        request.options.tool_choice = json::parse_or_throw(bad, "test");
        EXPECT_THROW(static_cast<void>(codec.plan(request)), provider_error) << bad;
    }
    request.options.tool_choice = "required";
    EXPECT_TRUE(codec.plan(request).choice.empty());
    request.tools = one_tool();
    EXPECT_EQ(codec.plan(request).choice.what, tool_choice::kind::required);
    EXPECT_TRUE(codec.plan(request).choice.forces());
}

TEST(OpenaiEncode, ThinkingModeAndRawThinkingExcludeEachOther)
{
    openai_codec_options o;
    o.mode = thinking_mode::off;
    const openai_codec codec{o};
    generate_request request = asking("hi");
    request.options.thinking = json::object();
    EXPECT_THROW(static_cast<void>(codec.plan(request)), validation_error);
    request.options.mode.emplace(std::nullopt);
    EXPECT_NO_THROW(static_cast<void>(codec.plan(request)));
}

TEST(OpenaiEncode, KnowsDeepseekHosts)
{
    const auto deepseek = [](const char* base) {
        openai_codec_options o;
        o.base_url = url::parse_or_throw(base, "test");
        return openai_codec(o).deepseek();
    };
    EXPECT_TRUE(deepseek("https://api.deepseek.com/v1"));
    EXPECT_FALSE(deepseek("https://deepseek.com"));  // no subdomain
    EXPECT_FALSE(deepseek("https://notdeepseek.com"));
    EXPECT_FALSE(deepseek("https://deepseek.com.evil.example"));
}

TEST(OpenaiEncode, KeyTravelsInTheClearOnlyOverPlainHttpToAnotherHost)
{
    const auto clear = [](const char* base, const char* key) {
        openai_codec_options o;
        o.base_url = url::parse_or_throw(base, "test");
        o.key = secret(key);
        return openai_codec(o).key_in_clear();
    };
    EXPECT_TRUE(clear("http://10.0.0.9:1/v1", "k"));
    EXPECT_FALSE(clear("http://10.0.0.9:1/v1", ""));
    EXPECT_FALSE(clear("http://127.0.0.1/v1", "k"));
    EXPECT_FALSE(clear("http://[::1]/v1", "k"));
    EXPECT_FALSE(clear("https://10.0.0.9/v1", "k"));
    EXPECT_TRUE(clear("http://127.0.0.1.evil.example/v1", "k"));
}

TEST(OpenaiEncode, AKeyOfTwoLinesIsRefused)
{
    openai_codec_options o;
    o.key = secret("a\r\nX-Evil: 1");
    EXPECT_THROW(openai_codec{o}, validation_error);
}

TEST(OpenaiEncode, ToolBytesAreMadeOncePerList)
{
    const openai_codec codec{openai_codec_options()};
    generate_request request = asking("hi");
    request.tools = one_tool();
    EXPECT_EQ(body_of(codec, request)["tools"].dump(), R"([{"type":"function","function":{"name":"find"}}])");
    auto other = std::make_shared<std::vector<tool_schema>>();
    other->emplace_back("write", "w", json::object());
    request.tools = other;
    EXPECT_EQ(body_of(codec, request)["tools"].dump(), R"([{"type":"function","function":{"name":"write","description":"w","parameters":{}}}])");
    request.tools.reset();
    EXPECT_EQ(body_of(codec, request).find("tools"), nullptr);
}

TEST(OpenaiEncode, AChoiceThatIsNotSentForcesNothing)
{
    openai_codec_options o;
    o.base_url = url::parse_or_throw("https://api.deepseek.com/v1", "test");
    o.mode = thinking_mode::on;
    const openai_codec codec(o);
    generate_request request = asking("hi");
    request.options.tool_choice = "required";
    EXPECT_FALSE(codec.plan(request).choice.forces());
    EXPECT_EQ(body_of(codec, request)["thinking"]["type"].as_string(), "enabled");
    request.tools = one_tool();
    EXPECT_TRUE(codec.plan(request).choice.forces());
    EXPECT_EQ(body_of(codec, request)["thinking"]["type"].as_string(), "disabled");
}

TEST(OpenaiEncode, AKeyThatCannotStandInAHeaderIsRefusedUnshown)
{
    for (const char c : {'\r', '\n', '\0', '\t', '\x01', '\x1f', '\x7f'}) {
        openai_codec_options o;
        o.key = secret(std::string("sk-left") + c + "sk-right");
        try {
            const openai_codec codec(o);
            FAIL() << static_cast<int>(c);
        } catch (const validation_error& e) {
            EXPECT_NE(std::string(e.what()).find("apiKey"), std::string::npos);
            EXPECT_EQ(std::string(e.what()).find("sk-"), std::string::npos);
        }
    }
}

TEST(OpenaiEncode, AnEmptyListOfPartsStaysOne)
{
    const openai_codec codec{openai_codec_options()};
    const generate_request request({message::from_json(json::parse_or_throw(R"({"role":"user","content":[]})", "test"))});
    EXPECT_EQ(body_of(codec, request)["messages"][0]["content"].dump(), "[]");
}

TEST(OpenaiEncode, CarriesHeadersAndMembersOfTheUser)
{
    openai_codec_options o;
    o.key = secret("sk-1");
    o.headers = {{"OpenAI-Organization", "org"}, {"x-trace", ""}};
    o.members = json::parse_or_throw(R"({"top_p":0.50,"stop":["a"],"parallel_tool_calls":false})", "test");
    const openai_codec codec{o};
    std::string storage;
    const generate_request request = asking("hi");
    const wire_request wire = codec.encode(request, codec.plan(request), true, {}, storage);
    EXPECT_TRUE(wire.header_lines.ends_with("Authorization: Bearer sk-1\r\nOpenAI-Organization: org\r\nx-trace: \r\n")) << wire.header_lines;
    EXPECT_NE(wire.body.find(R"(,"top_p":0.50,"stop":["a"],"parallel_tool_calls":false)"), std::string_view::npos) << wire.body;
    for (const auto& [name, value] :
         {std::pair<std::string, std::string>{"a b", "x"}, {"", "x"}, {"a", "sk-x\r\nb: c"}, {"a:", "x"}, {"Content-type", "x"}, {"authorization", "x"}}) {
        openai_codec_options bad = o;
        bad.headers = {{name, value}};
        try {
            const openai_codec refused{bad};
            FAIL() << name;
        } catch (const validation_error& e) {
            EXPECT_EQ(std::string(e.what()).find("sk-x"), std::string::npos);
        }
    }
    for (const char* members : {"[]", "7", R"({"model":"x"})", R"({"n":2})", R"({"stream":true})", R"({"max_tokens":1})"}) {
        openai_codec_options bad = o;
        bad.members = json::parse_or_throw(members, "test");
        EXPECT_THROW(openai_codec{bad}, validation_error) << members;
    }
}

}  // namespace openai_encode_test
}  // namespace
