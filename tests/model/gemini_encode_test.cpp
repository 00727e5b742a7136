#include <reagent/base/error.hpp>
#include <reagent/base/utf8.hpp>
#include <reagent/model/encoded_prefix.hpp>
#include <reagent/model/gemini_codec.hpp>
#include <reagent/model/ollama_codec.hpp>
#include <reagent/model/provider_error.hpp>

#include <gtest/gtest.h>

namespace {
namespace gemini_encode_test {

using namespace reagent;

json read(std::string_view text)
{
    return json::parse_or_throw(text, "test");
}

gemini_codec_options model_m()
{
    gemini_codec_options o;
    o.model = "m";
    return o;
}

std::string bytes_of(const gemini_codec& codec, const generate_request& request)
{
    std::string storage;
    const call_plan plan = codec.plan(request);
    const thinking_ladder ladder = codec.ladder(plan, {});
    return std::string(codec.encode(request, plan, true, ladder.members(), storage).body);
}

json body_of(const gemini_codec& codec, const generate_request& request)
{
    return read(bytes_of(codec, request));
}

generate_request from(std::string_view messages)
{
    generate_request r(transcript_from_json(read(messages)));
    r.options.stream = false;
    return r;
}

std::string contents(std::string_view messages)
{
    return body_of(gemini_codec(model_m()), from(messages))["contents"].dump();
}

/// An assistant message with one call `f` and native parts.
std::string turn(std::string_view blocks, std::string_view arguments = R"({\"q\":1})", std::string_view content = "null", std::string_view model = "m")
{
    return R"([{"role":"assistant","content":)" + std::string(content) + R"(,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":")" +
        std::string(arguments) + R"("}}],"providerBlocks":{"provider":"gemini","model":")" + std::string(model) + R"(","blocks":)" + std::string(blocks) +
        R"(}},{"role":"tool","tool_call_id":"c1","content":"r"}])";
}

TEST(GeminiEncode, MapsMessages)
{
    class row {
    public:
        std::string what, messages, contents;
    };
    for (
        const row& r : {
            row{"another role is a user", R"([{"role":"critic","content":"x"}])", R"([{"role":"user","parts":[{"text":"x"}]}])"},
            row{"text of the assistant that is empty is no part", R"([{"role":"assistant","content":""},{"role":"user","content":""}])",
                R"([{"role":"user","parts":[{"text":""}]}])"},
            row{"a turn without parts is none", R"([{"role":"user","content":null},{"role":"user","content":[]}])", "[]"},
            row{"text objects with more members are text", R"([{"role":"user","content":[{"type":"text","text":"a","x":1},{"type":"text","text":"b"}]}])",
                R"([{"role":"user","parts":[{"text":"a"},{"text":"b"}]}])"},
            row{"a type is told when known", R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ=="}}]}])",
                R"([{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"QQ=="}}]}])"},
            row{"a result without id", R"([{"role":"tool","tool_call_id":"","content":"r"}])",
                R"([{"role":"user","parts":[{"functionResponse":{"name":"tool","response":{"content":"r"}}}]}])"},
            row{"texts of a result are joined", R"([{"role":"tool","tool_call_id":"z","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])",
                R"([{"role":"user","parts":[{"functionResponse":{"name":"z","response":{"content":"a\nb"}}}]}])"},
            row{"stored arguments that are no object",
                R"([{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"[1]"}}]}])",
                R"([{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}])"},
            row{"the last call of an id is the one answered",
                R"([{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},
                     {"role":"tool","tool_call_id":"a","content":"1"},
                     {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"g","arguments":"{}"}}]},
                     {"role":"tool","tool_call_id":"a","content":"2"}])",
                R"([{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"content":"1"}}}]},)"
                R"({"role":"model","parts":[{"functionCall":{"name":"g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"content":"2"}}}]}])"},
        })
        EXPECT_EQ(contents(r.messages), r.contents) << r.what;
}

TEST(GeminiEncode, ReplaysItsOwnTurns)
{
    class row {
    public:
        std::string what, messages, model_turn, response;
    };
    const std::string plain = R"({"functionCall":{"name":"f","args":{"q":1}}})", answer = R"({"name":"f","response":{"content":"r"}})";
    for (const row& r : {
             row{"byte for byte, parts we do not know included",
                 turn(R"([{"text":"why","thought":true},{"executableCode":{"n":1.50}},{"functionCall":{"args":{"q":1.0},"name":"f"},"thoughtSignature":"S"}])"),
                 R"([{"text":"why","thought":true},{"executableCode":{"n":1.50}},{"functionCall":{"args":{"q":1.0},"name":"f"},"thoughtSignature":"S"}])",
                 answer},
             row{"with the id that the model gave", turn(R"([{"functionCall":{"id":"x7","name":"f","args":{"q":1}},"thoughtSignature":"S"}])"),
                 R"([{"functionCall":{"id":"x7","name":"f","args":{"q":1}},"thoughtSignature":"S"}])", R"({"id":"x7","name":"f","response":{"content":"r"}})"},
             row{"edited text: the message says it, the signature stays with its call",
                 turn(R"([{"text":"old"},{"functionCall":{"id":"x7","name":"f","args":{"q":1}},"thoughtSignature":"S"}])", R"({\"q\":1})", R"("new")"),
                 R"([{"text":"new"},{"functionCall":{"id":"x7","name":"f","args":{"q":1}},"thoughtSignature":"S"}])",
                 R"({"id":"x7","name":"f","response":{"content":"r"}})"},
             row{"edited arguments: no signature for what the model did not say",
                 turn(R"([{"functionCall":{"name":"f","args":{"q":2}},"thoughtSignature":"S"}])"), "[" + plain + "]", answer},
             row{"another model", turn(R"([{"functionCall":{"id":"x7","name":"f","args":{"q":1}},"thoughtSignature":"S"}])", R"({\"q\":1})", "null", "other"),
                 "[" + plain + "]", answer},
             row{"a call more than the message has",
                 turn(R"([{"functionCall":{"name":"f","args":{"q":1}},"thoughtSignature":"S"},{"functionCall":{"name":"f","args":{"q":2}}}])"),
                 R"([{"functionCall":{"name":"f","args":{"q":1}},"thoughtSignature":"S"}])", answer},
             row{"white space is no text", turn(R"([{"text":"\n"},{"functionCall":{"name":"f","args":{"q":1}},"thoughtSignature":"S"}])"),
                 R"([{"text":"\n"},{"functionCall":{"name":"f","args":{"q":1}},"thoughtSignature":"S"}])", answer},
             row{"no arguments are empty ones", turn(R"([{"functionCall":{"name":"f"},"thoughtSignature":"S"}])", "{}"),
                 R"([{"functionCall":{"name":"f"},"thoughtSignature":"S"}])", answer},
         }) {
        const json body = body_of(gemini_codec(model_m()), from(r.messages));
        EXPECT_EQ(body["contents"][0]["parts"].dump(), r.model_turn) << r.what;
        EXPECT_EQ(body["contents"][1]["parts"][0]["functionResponse"].dump(), r.response) << r.what;
    }
}

TEST(GeminiEncode, BlocksOfAnotherProviderAreNotReplayed)
{
    const std::string body = contents(
        R"([{"role":"assistant","content":"a","providerBlocks":{"provider":"anthropic","model":"m","blocks":[{"text":"a","thoughtSignature":"S"}]}}])");
    EXPECT_EQ(body, R"([{"role":"model","parts":[{"text":"a"}]}])");
}

TEST(GeminiEncode, RefusesWhatItCannotCarry)
{
    for (const char* messages : {R"([{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}])",
                                 R"([{"role":"tool","tool_call_id":"a","content":[{"type":"image","source":{"kind":"url","url":"https://a.example/x"}}]}])"}) {
        try {
            contents(messages);
            FAIL() << messages;
        } catch (const validation_error& e) {
            EXPECT_TRUE(std::string_view(e.what()).starts_with("[GeminiProvider] ")) << e.what();
        }
    }
}

TEST(GeminiEncode, ChoosesTheSchemaMemberByItsKeywords)
{
    class row {
    public:
        std::string schema;
        bool openapi;
    };
    for (const row& r : {
             row{R"({"type":"object","properties":{"const":{"type":"string"},"a":{"type":"array","items":{"type":"integer","minimum":1}}},"required":["a"]})",
                 true},
             row{R"({"type":"object","properties":{"a":{"anyOf":[{"type":"string","enum":["x"]},{"type":"number","nullable":true}]}}})", true},
             row{R"({"type":"object","properties":{"a":{"anyOf":[{"const":1}]}}})", false},
             row{R"({"type":"object","properties":{"a":{"type":"integer","enum":[1]}}})", false},
             row{R"({"type":["object","null"]})", false},
             row{R"({"type":"object","properties":{"a":true}})", false},
             row{R"({"type":"array","items":[{"type":"string"}]})", false},
             row{R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"object","additionalProperties":false}}}})", false},
             row{R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}})", false},
             row{R"(true)", false},
         }) {
        auto tools = std::make_shared<std::vector<tool_schema>>();
        tools->emplace_back("f", "", read(r.schema));
        generate_request request = from("[]");
        request.tools = tools;
        const json declared = body_of(gemini_codec(model_m()), request)["tools"][0]["functionDeclarations"][0];
        EXPECT_EQ(declared[r.openapi ? "parameters" : "parametersJsonSchema"].dump(), r.schema);
        EXPECT_EQ(declared.size(), 2U) << r.schema;
    }
}

TEST(GeminiEncode, PutsItsConfigTogether)
{
    gemini_codec_options o = model_m();
    o.max_tokens = 9;
    o.members = read(R"({"safetySettings":[],"generationConfig":{"topP":0.50,"seed":9007199254740993}})");
    const gemini_codec codec(o);
    generate_request request = from("[]");
    request.options.thinking = read(R"({"includeThoughts":true})");
    EXPECT_EQ(
        bytes_of(codec, request),
        R"({"contents":[],"generationConfig":{"maxOutputTokens":9,"thinkingConfig":{"includeThoughts":true},"topP":0.50,"seed":9007199254740993},"safetySettings":[]})");
    request.options.max_tokens = 0;
    request.options.thinking.reset();
    EXPECT_EQ(bytes_of(gemini_codec(model_m()), request), R"({"contents":[]})");
    for (const char* members : {R"({"contents":[]})", R"({"generationConfig":{"temperature":1}})", R"({"generationConfig":{"candidateCount":2}})",
                                R"({"generationConfig":7})", R"({"toolConfig":{}})"}) {
        gemini_codec_options bad = model_m();
        bad.members = read(members);
        EXPECT_THROW(gemini_codec{bad}, validation_error) << members;
    }
}

TEST(GeminiEncode, TheModelIsOneSegmentOfThePath)
{
    const auto target = [](const char* model, bool stream) {
        gemini_codec_options o;
        o.model = model;
        o.base_url = url::parse_or_throw("http://127.0.0.1:1/v1/?a=b", "test");
        return std::string(gemini_codec(o).endpoint(stream).text());
    };
    EXPECT_EQ(target("m", false), "http://127.0.0.1:1/v1/models/m:generateContent?a=b");
    EXPECT_EQ(target("m", true), "http://127.0.0.1:1/v1/models/m:streamGenerateContent?alt=sse&a=b");
    EXPECT_EQ(target("models/m", false), "http://127.0.0.1:1/v1/models/m:generateContent?a=b");
    EXPECT_EQ(target("tunedModels/m", false), "http://127.0.0.1:1/v1/tunedModels/m:generateContent?a=b");
    EXPECT_EQ(target("a?b#c d%2F", false), "http://127.0.0.1:1/v1/models/a%3Fb%23c%20d%252F:generateContent?a=b");
}

TEST(GeminiEncode, WalksTheShapesOfItsGeneration)
{
    class row {
    public:
        const char* model;
        thinking_mode mode;
        std::vector<std::string> shapes;
    };
    const auto on = thinking_mode::on, off = thinking_mode::off;
    const std::string high = R"({"thinkingLevel":"high"})", minimal = R"({"thinkingLevel":"minimal"})", free = R"({"thinkingBudget":-1})",
                      zero = R"({"thinkingBudget":0})";
    for (const row& r : {row{"gemini-3-flash-preview", on, {high, free, ""}}, row{"gemini-3-flash-preview", off, {minimal, zero, ""}},
                         row{"models/gemini-3.1-pro-preview", on, {high, free, ""}}, row{"gemini-10-pro", off, {minimal, zero, ""}},
                         row{"gemini-2.5-flash", on, {free, high, ""}}, row{"gemini-2.5-flash", off, {zero, minimal, ""}},
                         row{"gemma-3", off, {zero, minimal, ""}}, row{"gemini-3.1-pro-preview", off, {""}}}) {
        gemini_codec_options o;
        o.model = r.model;
        o.mode = r.mode;
        const gemini_codec codec(o);
        const generate_request request = from("[]");
        const call_plan plan = codec.plan(request);
        thinking_ladder ladder = codec.ladder(plan, {});
        for (std::size_t i = 0; i < r.shapes.size(); ++i) {
            std::string storage;
            const json body = read(codec.encode(request, plan, true, ladder.members(), storage).body);
            const json& config = body["generationConfig"]["thinkingConfig"];
            EXPECT_EQ(config.is_null() ? std::string() : config.dump(), r.shapes[i]) << r.model << i;
            const auto verdict = ladder.refused(400);
            EXPECT_EQ(verdict, i + 1 == r.shapes.size() ? thinking_ladder::verdict::fail : thinking_ladder::verdict::resend) << r.model << i;
        }
    }
}

/// What every wire but OpenAI's, which has its own, writes of the same transcript.
std::vector<std::pair<std::string, std::string>> bodies(const transcript& messages)
{
    const generate_request request{transcript(messages)};
    const gemini_codec g{model_m()};
    const ollama_codec o{ollama_codec_options()};
    std::string storage;
    std::vector<std::pair<std::string, std::string>> out;
    out.emplace_back("gemini", bytes_of(g, request));
    out.emplace_back("ollama", o.encode(request, o.plan(request), true, {}, storage).body);
    return out;
}

TEST(GeminiEncode, Case_B5_ReplayedCallsKeepTheirNumbers)
{
    for (const std::string number : {"9007199254740993", "9223372036854775807", "18446744073709551615", "1e400", "-0.0"}) {
        const std::string arguments = "{\"id\":" + number + "}";
        std::vector<tool_call> calls;
        calls.emplace_back("a", "get", read(arguments));
        calls.emplace_back("b", "get", json(arguments));  // as stored text
        for (const auto& [wire, body] : bodies({message::assistant("", calls)})) {
            const std::size_t first = body.find(":" + arguments);
            ASSERT_NE(first, std::string::npos) << wire << body;
            EXPECT_NE(body.find(":" + arguments, first + 1), std::string::npos) << wire << body;
        }
        provider_blocks kept("gemini", "m", read(R"([{"functionCall":{"name":"get","args":)" + arguments + R"(},"thoughtSignature":"S"}])"));
        calls.pop_back();
        EXPECT_EQ(bytes_of(gemini_codec(model_m()), generate_request({message::assistant("", calls, kept)})),
                  R"({"contents":[{"role":"model","parts":[{"functionCall":{"name":"get","args":)" + arguments + R"(},"thoughtSignature":"S"}]}]})");
    }
}

TEST(GeminiEncode, Case_B6_IllFormedTextIsRepairedWhenTheRequestIsWritten)
{
    using namespace std::string_literals;
    const std::string bad = "lone \xED\xA0\xBD, NUL \0, raw \xFF, U+FFFE \xEF\xBF\xBE end"s;
    std::vector<tool_call> odd;
    odd.emplace_back(bad, bad, json::object().set(bad, bad));
    for (const auto& [wire, body] : bodies({message::system(bad), message::user(bad), message::assistant(bad, odd), message::tool_result(bad, bad)})) {
        EXPECT_TRUE(is_utf8(body)) << wire;
        EXPECT_EQ(body.find('\0'), std::string::npos) << wire;
        EXPECT_NE(body.find("\\u0000"), std::string::npos) << wire;
        EXPECT_NE(read(body).dump().find("end"), std::string::npos) << wire;
    }
    const json body = read(bodies({message::assistant("", odd), message::tool_result(bad, bad)})[0].second);
    EXPECT_EQ(body["contents"][1]["parts"][0]["functionResponse"]["response"]["content"].as_string(), repair_utf8(bad));
}

TEST(GeminiEncode, APrefixGrowsAnItemOfResults)
{
    const gemini_codec codec{model_m()};
    const transcript all = transcript_from_json(read(
        R"([{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},)"
        R"({"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"}])"));
    encoded_prefix prefix;
    for (std::size_t n = 0; n <= all.size(); ++n) {
        generate_request fresh(transcript(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)));
        generate_request kept = fresh;
        kept.prefix = &prefix;
        EXPECT_EQ(bytes_of(codec, kept), bytes_of(codec, fresh)) << n;
    }
}

}  // namespace gemini_encode_test
}  // namespace
