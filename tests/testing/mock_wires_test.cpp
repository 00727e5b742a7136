#include "mock_plan.hpp"

#include <reagent/model/anthropic_codec.hpp>
#include <reagent/model/gemini_codec.hpp>
#include <reagent/model/ollama_codec.hpp>
#include <reagent/model/openai_codec.hpp>
#include <reagent/model/openai_responses_codec.hpp>
#include <reagent/model/wire_decoder.hpp>

#include <gtest/gtest.h>

#include <memory>

namespace {
namespace mock_wires_test {

using namespace reagent;
using namespace reagent::testing_detail;

template <class Codec, class Options>
std::unique_ptr<const wire_codec> codec_of()
{
    Options o;
    o.model = "m";
    o.key = secret("k");
    return std::make_unique<const Codec>(std::move(o));
}

struct wire_row {
    const char* path;
    std::unique_ptr<const wire_codec> (*codec)();
    const char* request;  ///< the user asked, the model called `look`, the result c1 came back; at most 50 tokens
    std::uint64_t max_tokens;
};

const wire_row wires[] = {
    {"/v1/chat/completions", codec_of<openai_codec, openai_codec_options>,
     R"({"model":"m","messages":[{"role":"user","content":"ask"},{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","tool_call_id":"c1","content":"r"}],
         "tools":[{"type":"function","function":{"name":"look"}}],"max_tokens":50})",
     50},
    {"/v1/responses", codec_of<openai_responses_codec, openai_responses_codec_options>,
     R"({"model":"m","input":[{"role":"user","content":"ask"},{"role":"assistant","content":"so"},{"type":"function_call","call_id":"c1","name":"look"},
         {"type":"function_call_output","call_id":"c1","output":"r"}],"tools":[{"type":"function","name":"look"}],"max_output_tokens":50})",
     50},
    {"/v1/messages", codec_of<anthropic_codec, anthropic_codec_options>,
     R"({"model":"m","messages":[{"role":"user","content":"ask"},{"role":"assistant","content":[]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}]}],
         "tools":[{"name":"look"}],"max_tokens":50})",
     50},
    {"/v1beta/models/m:generateContent", codec_of<gemini_codec, gemini_codec_options>,
     R"({"contents":[{"role":"user","parts":[{"text":"ask"}]},{"role":"model","parts":[]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"look"}}]}],
         "tools":[{"functionDeclarations":[{"name":"look"}]}],"generationConfig":{"maxOutputTokens":50}})",
     50},
    {"/api/chat", codec_of<ollama_codec, ollama_codec_options>,
     R"({"model":"m","messages":[{"role":"user","content":"ask"},{"role":"assistant","content":""},{"role":"tool","tool_call_id":"c1","content":"r"}],
         "tools":[{"function":{"name":"look"}}],"options":{"num_predict":50}})",
     50},
};

mock_answer answer(std::string text, bool calls)
{
    mock_answer a;
    a.sequence = 7;
    a.model = "m";
    a.text = std::move(text);
    a.has_text = !a.text.empty();
    a.chunk_size = 5;
    a.input = 11;
    a.output = 4;
    a.finish = "stop";
    if (!calls) return a;
    a.finish = "tool_calls";
    const auto call = [&](const char* name, const char* arguments, const char* id) {
        mock_tool_call& c = a.calls.emplace_back();
        c.name = name;
        c.arguments = arguments;
        c.id = id;
    };
    call("look", R"({"n":9007199254740993,"s":"ü"})", "c1");
    call("rest", "{}", "c2");
    return a;
}

struct outcome {
    decode_state state = decode_state::more;
    generate_result result;
};

outcome whole(const wire_codec& codec, const mock_wire& wire, const mock_answer& a)
{
    outcome o;
    const auto decoder = codec.decoder({}, "");
    o.state = decoder->on_body(wire.body(a), 200, nullptr);
    if (o.state == decode_state::done) o.result = decoder->take_result();
    return o;
}

outcome streamed(const wire_codec& codec, const mock_wire& wire, const mock_answer& a)
{
    outcome o;
    const auto decoder = codec.decoder({}, "");
    for (const wire_event& e : wire.events(a)) {
        if (o.state != decode_state::more) break;
        o.state = decoder->on_event(e.data, e.type, nullptr);
    }
    if (o.state == decode_state::more) o.state = decoder->on_end(true, nullptr);
    if (o.state == decode_state::done) o.result = decoder->take_result();
    return o;
}

TEST(MockWires, OurDecodersReadEveryAnswerTheSameBothWays)
{
    for (const wire_row& row : wires) {
        const mock_wire& wire = *route_of(row.path)->wire;
        const auto codec = row.codec();
        for (const auto& [text, calls] : std::initializer_list<std::pair<const char*, bool>>{{"Grüße, 世界", false}, {"", true}, {"let me look", true}}) {
            const mock_answer a = answer(text, calls);
            for (const auto& read : {whole, streamed}) {
                const outcome o = read(*codec, wire, a);
                ASSERT_EQ(o.state, decode_state::done) << row.path;
                EXPECT_EQ(o.result.text, text) << row.path;
                ASSERT_EQ(o.result.tool_calls.size(), a.calls.size()) << row.path;
                for (std::size_t i = 0; i < a.calls.size(); ++i) {
                    EXPECT_EQ(o.result.tool_calls[i].id, a.calls[i].id) << row.path;
                    EXPECT_EQ(o.result.tool_calls[i].name, a.calls[i].name) << row.path;
                    EXPECT_EQ(o.result.tool_calls[i].arguments.dump(), a.calls[i].arguments) << row.path;
                }
                ASSERT_TRUE(o.result.usage) << row.path;
                EXPECT_EQ(o.result.usage->input, 11U) << row.path;
                EXPECT_EQ(o.result.usage->output, 4U) << row.path;
                EXPECT_EQ(o.result.stop_reason, calls ? "tool_use" : "end_turn") << row.path;
            }
        }
    }
}

TEST(MockWires, AStreamWithoutItsFinishOrWithAnErrorFails)
{
    for (const wire_row& row : wires) {
        const mock_wire& wire = *route_of(row.path)->wire;
        const auto codec = row.codec();
        mock_answer a = answer("hello there", false);
        a.with_finish = false;
        EXPECT_EQ(streamed(*codec, wire, a).state, decode_state::failed) << row.path;
        const auto decoder = codec->decoder({}, "");
        const wire_event e = wire.error_event(503, "broke down", 0);
        EXPECT_EQ(decoder->on_event(e.data, e.type, nullptr), decode_state::failed) << row.path;
        EXPECT_NE(std::string(decoder->take_failure().what()).find("broke down"), std::string::npos) << row.path;
    }
}

TEST(MockWires, ARequestSaysTheSameOnEachWire)
{
    for (const wire_row& row : wires) {
        chat_facts f;
        ASSERT_EQ(read_request(*route_of(row.path), row.request, f), "") << row.path;
        EXPECT_EQ(f.model, "m") << row.path;
        EXPECT_EQ(f.last_user, "ask") << row.path;
        EXPECT_TRUE(f.has_tool_result) << row.path;
        EXPECT_EQ(f.last_tool_call_id, "c1") << row.path;
        EXPECT_EQ(f.assistant_messages, 1U) << row.path;
        EXPECT_EQ(f.tools, std::vector<std::string>{"look"}) << row.path;
        EXPECT_EQ(f.max_tokens, row.max_tokens) << row.path;
        EXPECT_EQ(f.stream, std::string_view(row.path) == "/api/chat") << row.path;
        chat_facts none;
        EXPECT_NE(read_request(*route_of(row.path), R"({"model":"m"})", none), "") << row.path;
    }
    EXPECT_TRUE(route_of("/v1beta/models/m:streamGenerateContent")->stream);
    for (const char* path : {"/v1beta/models/m:countTokens", "/v1beta/models/:generateContent", "/v1/complete", "/"}) EXPECT_FALSE(route_of(path)) << path;
}

}  // namespace mock_wires_test
}  // namespace
