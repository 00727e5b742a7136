#include <reagent/base/error.hpp>
#include <reagent/model/ollama_codec.hpp>
#include <reagent/model/provider_error.hpp>

#include <gtest/gtest.h>

namespace {
namespace ollama_encode_test {

using namespace reagent;

json read(std::string_view text)
{
    return json::parse_or_throw(text, "test");
}

ollama_codec_options model_m()
{
    ollama_codec_options o;
    o.model = "m";
    return o;
}

std::string bytes_of(const ollama_codec& codec, const generate_request& request)
{
    std::string storage;
    const call_plan plan = codec.plan(request);
    const thinking_ladder ladder = codec.ladder(plan, {});
    return std::string(codec.encode(request, plan, true, ladder.members(), storage).body);
}

generate_request from(std::string_view messages)
{
    generate_request r(transcript_from_json(read(messages)));
    r.options.stream = false;
    return r;
}

TEST(OllamaEncode, MapsMessages)
{
    class row {
    public:
        std::string what, messages, written;
    };
    for (
        const row& r : {
            row{"other roles as they are", R"([{"role":"critic","content":"x"}])", R"([{"role":"critic","content":"x"}])"},
            row{"no content is empty content", R"([{"role":"user","content":null}])", R"([{"role":"user","content":""}])"},
            row{"texts are joined", R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","x":1}]}])",
                R"([{"role":"user","content":"a\nb"}])"},
            row{"a result of an unknown call has no name", R"([{"role":"tool","tool_call_id":"z","content":"r"}])",
                R"([{"role":"tool","content":"r","tool_call_id":"z"}])"},
            row{"images in order",
                R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ=="}},{"type":"image","source":{"kind":"base64","mediaType":"image/png","data":"Qg=="}}]}])",
                R"([{"role":"user","content":"","images":["QQ==","Qg=="]}])"},
            row{"blocks and unknown keys stay behind",
                R"([{"role":"assistant","content":"a","foo":1,"providerBlocks":{"provider":"ollama","model":"m","blocks":[1]}}])",
                R"([{"role":"assistant","content":"a"}])"},
            row{"stored arguments that are no JSON",
                R"([{"role":"assistant","content":"t","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{bad"}}]}])",
                R"([{"role":"assistant","content":"t","tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}])"},
        })
        EXPECT_EQ(read(bytes_of(ollama_codec(model_m()), from(r.messages)))["messages"].dump(), r.written) << r.what;
}

TEST(OllamaEncode, RefusesWhatItCannotCarry)
{
    for (const char* messages :
         {R"([{"role":"user","content":[{"type":"image","source":{"kind":"url","url":"https://a.example/x"}}]}])",
          R"([{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}])",
          R"([{"role":"tool","tool_call_id":"a","content":[{"type":"image","source":{"kind":"base64","mediaType":"a/b","data":"QQ=="}}]}])"}) {
        try {
            bytes_of(ollama_codec(model_m()), from(messages));
            FAIL() << messages;
        } catch (const validation_error& e) {
            EXPECT_TRUE(std::string_view(e.what()).starts_with("[OllamaProvider] ")) << e.what();
        }
    }
}

TEST(OllamaEncode, ZeroTokensAreSentAndBoundNothing)
{
    ollama_codec_options o = model_m();
    o.max_tokens = 100;
    const ollama_codec codec(o);
    generate_request request = from("[]");
    EXPECT_EQ(codec.plan(request).max_tokens, 100U);
    EXPECT_EQ(codec.max_output(), 100U);
    request.options.max_tokens = 0;
    EXPECT_FALSE(codec.plan(request).max_tokens.has_value());
    EXPECT_EQ(read(bytes_of(codec, request))["options"].dump(), R"({"num_predict":0})");
    o.max_tokens = 0;
    EXPECT_FALSE(ollama_codec(o).max_output().has_value());
    EXPECT_EQ(read(bytes_of(ollama_codec(o), from("[]")))["options"].dump(), R"({"num_predict":0})");
}

TEST(OllamaEncode, PutsItsOptionsTogether)
{
    ollama_codec_options o = model_m();
    o.temperature = 0.5;
    o.thinking = "low";
    o.members = read(R"({"keep_alive":"5m","options":{"num_ctx":8192,"top_p":0.90}})");
    EXPECT_EQ(bytes_of(ollama_codec(o), from("[]")),
              R"({"model":"m","messages":[],"stream":false,"options":{"temperature":0.5,"num_ctx":8192,"top_p":0.90},"keep_alive":"5m","think":"low"})");
    for (const char* members : {R"({"stream":true})", R"({"options":{"num_predict":1}})", R"({"options":[]})", R"({"think":true})"}) {
        ollama_codec_options bad = model_m();
        bad.members = read(members);
        EXPECT_THROW(ollama_codec{bad}, validation_error) << members;
    }
}

TEST(OllamaEncode, AToolChoiceIsCheckedThenPassedOverAloud)
{
    const ollama_codec codec(model_m());
    auto tools = std::make_shared<std::vector<tool_schema>>();
    tools->emplace_back("f", "", json());
    generate_request request = from("[]");
    request.tools = tools;
    EXPECT_TRUE(codec.plan(request).notice.empty());
    request.options.tool_choice = "required";
    EXPECT_FALSE(codec.plan(request).notice.empty());
    EXPECT_EQ(read(bytes_of(codec, request)).find("tool_choice"), nullptr);
    request.options.tool_choice = "banana";
    EXPECT_THROW(static_cast<void>(codec.plan(request)), provider_error);
}

TEST(OllamaEncode, WalksTheShapesOfThink)
{
    for (const auto& [mode, shapes] : {std::pair(thinking_mode::on, std::vector<std::string>{"true", "\"medium\"", "null"}),
                                       std::pair(thinking_mode::off, std::vector<std::string>{"false", "null"})}) {
        ollama_codec_options o = model_m();
        o.mode = mode;
        const ollama_codec codec(o);
        const generate_request request = from("[]");
        const call_plan plan = codec.plan(request);
        thinking_ladder ladder = codec.ladder(plan, {});
        for (const std::string& shape : shapes) {
            std::string storage;
            EXPECT_EQ(read(codec.encode(request, plan, true, ladder.members(), storage).body)["think"].dump(), shape);
            static_cast<void>(ladder.refused(422));
        }
        EXPECT_TRUE(ladder.exhausted());
    }
}

}  // namespace ollama_encode_test
}  // namespace
