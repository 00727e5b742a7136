#include <reagent/base/error.hpp>
#include <reagent/base/utf8.hpp>
#include <reagent/model/anthropic_codec.hpp>
#include <reagent/model/encoded_prefix.hpp>
#include <reagent/model/provider_error.hpp>
#include <reagent/model/wire_decoder.hpp>

#include <gtest/gtest.h>

#include <random>

namespace {
namespace anthropic_encode_test {

using namespace reagent;

json parsed(std::string_view text)
{
    return json::parse_or_throw(text, "test");
}

anthropic_codec_options options()
{
    anthropic_codec_options o;
    o.model = "m";
    o.key = secret("k");
    return o;
}

std::string text_of(const anthropic_codec& codec, const generate_request& request)
{
    std::string storage;
    const call_plan plan = codec.plan(request);
    const thinking_ladder ladder = codec.ladder(plan, {});
    return std::string(codec.encode(request, plan, true, ladder.members(), storage).body);
}

json body_of(const anthropic_codec& codec, const generate_request& request)
{
    return parsed(text_of(codec, request));
}

generate_request asking(std::string_view messages)
{
    generate_request r(transcript_from_json(parsed(messages)));
    r.options.stream = false;
    return r;
}

/// A transcript and the messages it becomes, with the switch for marks.
class mapped {
public:
    const char* what;
    std::string messages, wire;
    bool mark = false;
};

const std::string call_a = R"({"id":"a","type":"function","function":{"name":"f","arguments":"{\"q\":1}"}})";
const std::string use_a = R"({"type":"tool_use","id":"a","name":"f","input":{"q":1}})";
const std::string mark = R"("cache_control":{"type":"ephemeral"})";
const std::string png = R"({"type":"image","source":{"kind":"base64","mediaType":"image/png","data":"QUJD"},"detail":"low"})";
const std::string wire_png = R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}})";
const std::string thought = R"({"type":"thinking","thinking":"t","signature":"S"})";

std::string blocks(const std::string& list, const std::string& model = "m", const std::string& layout = {})
{
    return R"("providerBlocks":{"provider":"anthropic","model":")" + model + R"(","blocks":[)" + list + "]" + (layout.empty() ? "" : ",\"layout\":" + layout) +
        "}";
}

std::string assistant(const std::string& content, const std::string& calls, const std::string& more = {})
{
    return R"({"role":"assistant","content":)" + content + (calls.empty() ? "" : ",\"tool_calls\":[" + calls + "]") + (more.empty() ? "" : "," + more) + "}";
}

TEST(AnthropicEncode, MessagesOfEveryKind)
{
    const std::string document = R"({"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"},"n":1.50})";
    const std::string tool_png = R"({"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"see"},)" + png + "," + document + "]}";
    const std::vector<mapped> rows = {
        {"strings", R"([{"role":"user","content":"hi"},{"role":"assistant","content":"yo"},{"role":"user","content":""}])",
         R"([{"role":"user","content":"hi"},{"role":"assistant","content":"yo"},{"role":"user","content":""}])"},
        {"another role", R"([{"role":"critic","content":"hm","name":"x"}])", R"([{"role":"critic","content":"hm"}])"},
        {"nothing at all", R"([{"role":"user","content":null},{"role":"system","content":"s"}])", "[]"},
        {"no text but parts", R"([{"role":"user","content":[]}])", R"([{"role":"user","content":[]}])"},
        {"image and native parts", R"([{"role":"user","content":[)" + png + R"(,{"type":"text","text":"x"},)" + document + "]}]",
         R"([{"role":"user","content":[)" + wire_png + R"(,{"type":"text","text":"x"},)" + document + "]}]"},
        {"an image of OpenAI's form", R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.example/i.png"}}]}])",
         R"([{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x.example/i.png"}}]}])"},
        {"image and file in a tool result", "[" + tool_png + "]",
         R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"see"},)" + wire_png + "," + document +
             "]}]}]"},
        {"text parts of a tool result", R"([{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}])",
         R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x\ny"}]}])"},
        {"a null result", R"([{"role":"tool","tool_call_id":"a","content":null}])",
         R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":""}]}])"},
        {"results of two rounds",
         R"([{"role":"tool","tool_call_id":"a","content":"1"},{"role":"user","content":"u"},{"role":"tool","tool_call_id":"b","content":"2"}])",
         R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"user","content":"u"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"2"}]}])"},
        {"blank text beside a call", "[" + assistant("\" \\n\"", call_a) + "]", R"([{"role":"assistant","content":[)" + use_a + "]}]"},
        {"parts beside a call", "[" + assistant("[{\"type\":\"text\",\"text\":\"x\"}," + png + "]", call_a) + "]",
         R"([{"role":"assistant","content":[{"type":"text","text":"x"},)" + wire_png + "," + use_a + "]}]"},
        {"arguments that are no object",
         "[" +
             assistant(
                 "null",
                 R"({"id":"b","function":{"name":"g","arguments":"{bad"}},{"id":"c","function":{"name":"g","arguments":"[1]"}},{"id":"d","function":{"name":"g"}})") +
             "]",
         R"([{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"g","input":{}},{"type":"tool_use","id":"c","name":"g","input":{}},{"type":"tool_use","id":"d","name":"g","input":{}}]}])"},
        {"thinking among the parts", "[" + assistant("[" + thought + R"(,{"type":"thinking","thinking":"unsigned"},{"type":"text","text":"x"}])", "") + "]",
         R"([{"role":"assistant","content":[)" + thought + R"(,{"type":"text","text":"x"}]}])"},
        {"blocks in front", "[" + assistant("\"x\"", call_a, blocks(thought)) + "]",
         R"([{"role":"assistant","content":[)" + thought + R"(,{"type":"text","text":"x"},)" + use_a + "]}]"},
        {"blocks alone", "[" + assistant("null", "", blocks(thought)) + "]", R"([{"role":"assistant","content":[)" + thought + "]}]"},
        {"blocks of another model", "[" + assistant("null", "", blocks(thought, "n")) + "]", "[]"},
        {"no blocks", "[" + assistant("\"x\"", "", blocks("")) + "]", R"([{"role":"assistant","content":"x"}])"},
        {"blocks of a user", R"([{"role":"user","content":"x",)" + blocks(thought) + "}]", R"([{"role":"user","content":"x"}])"},
        {"blocks to the letter", "[" + assistant("null", "", blocks(R"({"z":1.0,"type":"odd","a":"é\n","n":18446744073709551616})")) + "]",
         R"([{"role":"assistant","content":[{"z":1.0,"type":"odd","a":"é\n","n":18446744073709551616}]}])"},
        // Marks: one, on the last block of the last message, where it may stand.
        {"mark: two turns", R"([{"role":"user","content":"a"},{"role":"user","content":"b"}])",
         R"([{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b",)" + mark + "}]}]", true},
        {"mark: E25 empty text", R"([{"role":"user","content":""}])", R"([{"role":"user","content":""}])", true},
        {"mark: empty last part", R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":""}]}])",
         R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":""}]}])", true},
        {"mark: what is no message does not count", R"([{"role":"user","content":"a"},{"role":"assistant","content":null},{"role":"system","content":"s"}])",
         R"([{"role":"user","content":[{"type":"text","text":"a",)" + mark + "}]}]", true},
        {"mark: nothing there", R"([{"role":"system","content":"s"}])", "[]", true},
        {"mark: an image", R"([{"role":"user","content":[)" + png + "]}]",
         R"([{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"},)" + mark + "}]}]", true},
        {"mark: the last of two results", R"([{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"}])",
         R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2",)" + mark +
             "}]}]",
         true},
        {"mark: a result of parts", "[" + tool_png + "]",
         R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"see"},)" + wire_png + "," + document + "]," +
             mark + "}]}]",
         true},
        {"mark: a call", "[" + assistant("null", call_a) + "]",
         R"([{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"q":1},)" + mark + "}]}]", true},
        {"mark: not on thinking", "[" + assistant("null", "", blocks(thought)) + "]", R"([{"role":"assistant","content":[)" + thought + "]}]", true},
        {"mark: not on hidden thinking", "[" + assistant("null", "", blocks(R"({"type":"redacted_thinking","data":"d"})")) + "]",
         R"([{"role":"assistant","content":[{"type":"redacted_thinking","data":"d"}]}])", true},
        {"mark: a native block", "[" + assistant("null", "", blocks(R"({"type":"odd","x":{}})")) + "]",
         R"([{"role":"assistant","content":[{"type":"odd","x":{},)" + mark + "}]}]", true},
        {"mark: where the caller set one", R"([{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]}])",
         R"([{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]}])", true},
    };
    const anthropic_codec codec(options());
    for (const mapped& r : rows) {
        generate_request request = asking(r.messages);
        const json before = transcript_to_json(request.messages);
        if (r.mark) request.options.cache_messages = true;
        EXPECT_EQ(body_of(codec, request)["messages"].dump(), r.wire) << r.what;
        EXPECT_EQ(transcript_to_json(request.messages).dump(), before.dump()) << r.what << ": what the caller holds stays as it was";
    }
}

TEST(AnthropicEncode, TheSystemPrompt)
{
    class row {
    public:
        const char* messages;
        const char* call;  ///< null: none
        const char* plain;
        const char* marked;
    };
    const char* marked_ab = R"([{"type":"text","text":"a\n\nb","cache_control":{"type":"ephemeral","ttl":"5m"}}])";
    const char* array = R"([{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}])";
    anthropic_codec_options o = options();
    o.cache_ttl = "5m";
    const anthropic_codec codec(o);
    for (const row& r :
         {row{R"([{"role":"system","content":"a"},{"role":"user","content":"hi"},{"role":"system","content":""},{"role":"system","content":"b"}])", nullptr,
              R"("a\n\nb")", marked_ab},
          row{R"([{"role":"system","content":"a"}])", R"("")", "null", "null"}, row{R"([{"role":"system","content":"a"}])", "[]", "null", "null"},
          row{R"([{"role":"system","content":"a"}])", array, array, array},
          row{R"([{"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}])", nullptr, array,
              array},
          row{R"([{"role":"system","content":"a"},{"role":"system","content":[{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}])", nullptr,
              array, array},
          row{R"([{"role":"system","content":[]},{"role":"system","content":null}])", nullptr, "null", "null"}}) {
        for (const bool marked : {false, true}) {
            generate_request request = asking(r.messages);
            request.options.cache_system = marked;
            if (r.call != nullptr) request.options.system = parsed(r.call);
            EXPECT_EQ(body_of(codec, request)["system"].dump(), marked ? r.marked : r.plain) << r.messages << (r.call == nullptr ? "" : r.call);
        }
    }
    generate_request wrong = asking("[]");
    wrong.options.system = parsed(R"({"text":"a"})");
    EXPECT_THROW(static_cast<void>(text_of(codec, wrong)), validation_error);
}

TEST(AnthropicEncode, TheRestOfTheBody)
{
    anthropic_codec_options o = options();
    o.temperature = 0.5;
    o.max_tokens = 100;
    o.thinking = json::object().set("type", "adaptive");
    o.members = json::object().set("top_k", 5).set("stop_sequences", parsed(R"(["x"])"));
    const anthropic_codec codec(o);
    generate_request request = asking(R"([{"role":"user","content":"hi"}])");
    auto tools = std::make_shared<std::vector<tool_schema>>();
    tools->emplace_back("f", "does", parsed(R"({"type":"object","n":1.0})"));
    tools->emplace_back("g", "", json());
    request.tools = tools;
    request.options.tool_choice = parsed(R"({"name":"f"})");
    request.options.stream = true;
    EXPECT_EQ(
        text_of(codec, request),
        R"({"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":100,"temperature":0.5,"tools":[{"name":"f","description":"does","input_schema":{"type":"object","n":1.0}},{"name":"g","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"tool","name":"f"},"top_k":5,"stop_sequences":["x"],"thinking":{"type":"adaptive"},"stream":true})");
    request = asking(R"([{"role":"user","content":"hi"}])");
    request.options.temperature = 1.0;
    request.options.max_tokens = 7;
    request.options.thinking = json(false);
    EXPECT_EQ(text_of(codec, request),
              R"({"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":7,"temperature":1,"top_k":5,"stop_sequences":["x"]})");
    EXPECT_EQ(codec.max_output(), 100U);
    EXPECT_EQ(anthropic_codec(options()).max_output(), 4096U);
    request.options.max_tokens = 0;
    EXPECT_EQ(anthropic_codec(options()).plan(request).max_tokens, 4096U) << "this wire cannot do without";
}

TEST(AnthropicEncode, HeadersAndWhatIsRefused)
{
    const auto lines = [](anthropic_codec_options o) {
        const anthropic_codec codec(std::move(o));
        std::string storage;
        const generate_request request = asking("[]");
        return std::string(codec.encode(request, codec.plan(request), true, {}, storage).header_lines);
    };
    EXPECT_EQ(lines(options()), "Content-Type: application/json\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n");
    anthropic_codec_options o = options();
    o.headers = {{"anthropic-beta", "x"}, {"Anthropic-Version", "2024-01-01"}};
    EXPECT_EQ(lines(o), "Content-Type: application/json\r\nx-api-key: k\r\nanthropic-beta: x\r\nAnthropic-Version: 2024-01-01\r\n");
    EXPECT_EQ(anthropic_codec(options()).request_id_header(), "request-id");
    const auto refused = [](auto&& change) {
        anthropic_codec_options bad = options();
        change(bad);
        try {
            const anthropic_codec codec(bad);
        } catch (const validation_error& e) {
            return std::string(e.message());
        }
        return std::string("accepted");
    };
    EXPECT_EQ(refused([](auto& b) { b.key = secret(" \n"); }), "[AnthropicProvider] requires apiKey");
    EXPECT_EQ(refused([](auto& b) { b.key = secret("a\r\nx: y"); }), "[AnthropicProvider] apiKey must be one line of text");
    EXPECT_EQ(refused([](auto& b) { b.cache_ttl = "2h"; }), R"([AnthropicProvider] cacheTtl must be "5m" or "1h")");
    EXPECT_EQ(refused([](auto& b) { b.headers = {{"X-Api-Key", "z"}}; }), "[AnthropicProvider] the header X-Api-Key is set by the provider");
    for (const char* ours : {"model", "messages", "max_tokens", "system", "temperature", "thinking", "tools", "tool_choice", "stream"})
        EXPECT_EQ(refused([&](auto& b) { b.members = json::object().set(ours, 1); }),
                  "[AnthropicProvider] the body member " + std::string(ours) + " is set by the provider");
    const auto in_clear = [](const char* base) {
        anthropic_codec_options c = options();
        c.base_url = url::parse_or_throw(base, "test");
        return anthropic_codec(c).key_in_clear();
    };
    EXPECT_TRUE(in_clear("http://10.0.0.9/v1"));
    EXPECT_FALSE(in_clear("http://127.0.0.1:1/v1"));
    EXPECT_FALSE(in_clear("https://10.0.0.9/v1"));
}

TEST(AnthropicEncode, TheLadderOfThinkingModes)
{
    const auto shapes = [](const char* model, thinking_mode mode, std::uint64_t max_tokens) {
        anthropic_codec_options o = options();
        o.model = model;
        o.mode = mode;
        const anthropic_codec codec(o);
        generate_request request = asking("[]");
        request.options.max_tokens = max_tokens;
        const call_plan plan = codec.plan(request);
        thinking_ladder ladder = codec.ladder(plan, {});
        std::vector<std::string> out;
        std::string storage;
        do out.push_back(parsed(codec.encode(request, plan, true, ladder.members(), storage).body)["thinking"].dump());
        while (ladder.refused(400) == thinking_ladder::verdict::resend);
        return out;
    };
    using list = std::vector<std::string>;
    const std::string adaptive = R"({"type":"adaptive"})";
    const auto budget = [](int n) { return R"({"type":"enabled","budget_tokens":)" + std::to_string(n) + "}"; };
    EXPECT_EQ(shapes("m", thinking_mode::on, 0), (list{adaptive, budget(2048), "null"})) << "half of 4096";
    EXPECT_EQ(shapes("m", thinking_mode::on, 9001), (list{adaptive, budget(4500), "null"}));
    EXPECT_EQ(shapes("m", thinking_mode::on, 1025), (list{adaptive, budget(1024), "null"}));
    EXPECT_EQ(shapes("m", thinking_mode::on, 1024), (list{adaptive, "null"})) << "a budget that leaves nothing is skipped";
    EXPECT_EQ(shapes("m", thinking_mode::off, 0), (list{R"({"type":"disabled"})", "null"}));
    EXPECT_EQ(shapes("claude-opus-5-5", thinking_mode::off, 0), (list{"null"})) << "cannot be switched off";
    EXPECT_EQ(shapes("claude-opus-5-5", thinking_mode::on, 1), (list{adaptive, "null"}));
}

TEST(AnthropicEncode, ATemperatureBesideThinkingIsBlamed)
{
    const anthropic_codec codec(options());
    const auto blamed = [&](const char* said, std::optional<thinking_mode> mode, double temperature) {
        call_plan plan;
        plan.mode = mode;
        plan.temperature = temperature;
        return codec.refuses_temperature(said, plan);
    };
    const char* both = "Temperature may only be set to 1 when Thinking is enabled";
    EXPECT_TRUE(blamed(both, thinking_mode::on, 0.2));
    EXPECT_FALSE(blamed(both, thinking_mode::on, 1));
    EXPECT_FALSE(blamed(both, thinking_mode::off, 0.2));
    EXPECT_FALSE(blamed(both, std::nullopt, 0.2));
    EXPECT_FALSE(blamed("temperature must be <= 1", thinking_mode::on, 0.2));
    EXPECT_FALSE(blamed("thinking is not here", thinking_mode::on, 0.2));
    EXPECT_TRUE(blamed("`temperature` is deprecated for this model.", std::nullopt, 0.2));
}

TEST(AnthropicEncode, Case_B5_ReplayedCallsKeepTheirNumbers)
{
    const anthropic_codec codec(options());
    for (const std::string number : {"9007199254740993", "9223372036854775807", "18446744073709551615", "1e400", "-0.0"}) {
        std::vector<tool_call> calls;
        calls.emplace_back("a", "get", parsed("{\"id\":" + number + "}"));
        json list = json::array();
        list.push_back(parsed(R"({"type":"odd","n":)" + number + "}"));
        const generate_request request({message::assistant("", calls, provider_blocks("anthropic", "m", list))});
        const std::string body = text_of(codec, request);
        EXPECT_NE(body.find(R"("input":{"id":)" + number + "}"), std::string::npos) << body;
        EXPECT_NE(body.find(R"({"type":"odd","n":)" + number + "}"), std::string::npos) << body;
    }
}

TEST(AnthropicEncode, Case_B6_IllFormedTextIsRepairedWhenTheRequestIsWritten)
{
    using namespace std::string_literals;
    const anthropic_codec codec(options());
    const std::string bad = "lone \xED\xA0\xBD, NUL \0, raw \xFF, U+FFFE \xEF\xBF\xBE end"s, good = repair_utf8(bad);
    std::vector<tool_call> calls;
    calls.emplace_back(bad, bad, json::object().set(bad, bad));
    json list = json::array();
    list.push_back(json::object().set("type", "odd").set("data", bad));
    auto shown = std::make_shared<message>(role::tool, bad);
    shown->tool_call_id = bad;
    image_part picture;
    picture.url = bad;
    shown->parts.emplace_back(picture);
    const generate_request request({message::system(bad), message::user(bad), message::assistant(bad, calls, provider_blocks("anthropic", "m", list)),
                                    message::tool_result(bad, bad), shown});
    for (const bool marked : {false, true}) {
        generate_request r = request;
        r.options.cache_messages = r.options.cache_system = marked;
        const std::string text = text_of(codec, r);
        EXPECT_TRUE(is_utf8(text));
        EXPECT_EQ(text.find('\0'), std::string::npos);
        const json body = parsed(text);
        EXPECT_EQ((marked ? body["system"][0]["text"] : body["system"]).as_string(), good);
        const json& m = body["messages"];
        EXPECT_EQ(m[0]["content"].as_string(), good);
        EXPECT_EQ(m[1]["content"][0]["data"].as_string(), good);
        EXPECT_EQ(m[1]["content"][1]["text"].as_string(), good);
        EXPECT_EQ(m[1]["content"][2]["id"].as_string(), good);
        EXPECT_EQ(m[1]["content"][2]["input"][good].as_string(), good);
        EXPECT_EQ(m[2]["content"][0]["content"].as_string(), good);
        EXPECT_EQ(m[2]["content"][0]["tool_use_id"].as_string(), good);
        EXPECT_EQ(m[2]["content"][1]["content"][1]["source"]["url"].as_string(), good);
    }
}

TEST(AnthropicEncode, AnAnswerIsReplayedAsItStood)
{
    const anthropic_codec codec(options());
    const std::string search = R"({"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1.50}})", hi = R"({"type":"text","text":"hé "})",
                      yo = R"({"type":"text","text":"yo"})", blank = R"({"type":"text","text":"\n"})";
    const auto replayed = [&](const std::string& content, auto&& change) {
        const auto decoder = codec.decoder({}, "");
        EXPECT_EQ(decoder->on_body(R"({"content":[)" + content + R"(],"stop_reason":"end_turn"})", 200, nullptr), decode_state::done);
        generate_result r = decoder->take_result();
        change(r);
        const message_ptr said = message::assistant(r.text, r.tool_calls, r.blocks);
        // Through the text of a transcript as well.
        const message_ptr read = message::from_json(parsed(said->to_json().dump()));
        const std::string a = body_of(codec, generate_request({said}))["messages"][0]["content"].dump();
        EXPECT_EQ(body_of(codec, generate_request({read}))["messages"][0]["content"].dump(), a);
        return a;
    };
    const auto as_is = [](generate_result&) {};
    for (const std::string& content : {thought + "," + hi + "," + use_a, hi + "," + search + "," + yo, hi + "," + thought + "," + use_a + "," + search,
                                       search + "," + hi + "," + use_a, use_a + "," + thought + "," + hi})
        EXPECT_EQ(replayed(content, as_is), "[" + content + "]");
    EXPECT_EQ(replayed(hi + "," + search + "," + blank, as_is), "[" + hi + "," + search + "]") << "blank text is refused by the service";
    EXPECT_EQ(replayed(blank + "," + use_a + "," + search, as_is), "[" + use_a + "," + search + "]");
    // What was changed since puts the blocks in front.
    const std::string mixed = hi + "," + search + "," + yo + "," + use_a, front = "[" + search + ",";
    EXPECT_EQ(replayed(mixed, [](generate_result& r) { r.text = "hé yo!"; }), front + R"({"type":"text","text":"hé yo!"},)" + use_a + "]");
    EXPECT_EQ(replayed(mixed, [](generate_result& r) { r.text = "hé yO"; }), front + R"({"type":"text","text":"hé yO"},)" + use_a + "]")
        << "as long, yet another";
    EXPECT_EQ(replayed(mixed, [](generate_result& r) { r.tool_calls.clear(); }), front + R"({"type":"text","text":"hé yo"}])");
    EXPECT_EQ(replayed(mixed, [](generate_result& r) { r.tool_calls[0].id = "z"; }),
              front + R"({"type":"text","text":"hé yo"},{"type":"tool_use","id":"z","name":"f","input":{"q":1}}])");
    EXPECT_EQ(replayed(mixed, [](generate_result& r) { r.blocks->blocks.push_back(r.blocks->blocks[0]); }),
              front + search + R"(,{"type":"text","text":"hé yo"},)" + use_a + "]");
    for (const char* order :
         {R"([])", R"([{"block":1},{"text":6},{"call":"a"}])", R"([{"block":0},{"block":0},{"text":6},{"call":"a"}])",
          R"([{"block":0},{"text":7},{"call":"a"}])", R"([{"block":0},{"text":5},{"call":"a"}])", R"([{"block":0},{"text":6},{"call":"b"}])",
          R"([{"block":0},{"text":6},{"call":"a"},{"call":"a"}])", R"([{"block":0},{"text":6}])", R"([7,{"block":0},{"text":6},{"call":"a"}])", "7"})
        EXPECT_EQ(replayed(mixed, [&](generate_result& r) { r.blocks->layout.set("order", parsed(order)); }),
                  front + R"({"type":"text","text":"hé yo"},)" + use_a + "]")
            << order;
}

TEST(AnthropicEncode, APrefixChangesNothingButTheWork)
{
    const std::vector<std::string> kinds = {R"({"role":"user","content":"u"})",
                                            R"({"role":"system","content":"s"})",
                                            R"({"role":"tool","tool_call_id":"a","content":"r"})",
                                            R"({"role":"assistant","content":null})",
                                            R"({"role":"user","content":[{"type":"text","text":"p"}]})",
                                            assistant("\"x\"", call_a, blocks(thought))};
    std::mt19937 random(3);
    const anthropic_codec codec(options());
    for (int run = 0; run < 40; ++run) {
        encoded_prefix prefix;
        generate_request with, without;
        for (int round = 0; round < 12; ++round) {
            if (random() % 6 == 0 && !with.messages.empty()) with.messages.pop_back();
            else
                for (std::size_t n = 1 + random() % 3; n > 0; --n) with.messages.push_back(message::from_json(parsed(kinds[random() % kinds.size()])));
            with.options.cache_messages = random() % 2 == 0;
            without.messages = with.messages;
            without.options = with.options;
            with.prefix = &prefix;
            ASSERT_EQ(text_of(codec, with), text_of(codec, without)) << run << " " << round;
        }
    }
    // A round costs what it adds, marks or not: all but the last message is kept.
    encoded_prefix prefix;
    generate_request long_one;
    for (int i = 0; i < 50; ++i) long_one.messages.push_back(message::user("u"));
    long_one.prefix = &prefix;
    long_one.options.cache_messages = true;
    static_cast<void>(text_of(codec, long_one));
    long_one.messages.push_back(message::user("v"));
    static_cast<void>(text_of(codec, long_one));
    EXPECT_EQ(prefix.reused(), 49U);
}

}  // namespace anthropic_encode_test
}  // namespace
