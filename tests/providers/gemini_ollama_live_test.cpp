// Gemini and Ollama over a real socket.
#include "live_world.hpp"

#include <reagent/providers/gemini.hpp>
#include <reagent/providers/ollama.hpp>

#include <gtest/gtest.h>

namespace {
namespace gemini_ollama_live_test {

using namespace reagent;
namespace testing = reagent::testing;
using namespace reagent::live_world_detail;
using testing::http_chunk;
using testing::http_head;
using testing::http_response;

/// One of the two wires: how its provider is made and what its service sends.
class wire {
public:
    std::string name, target, streamed_target, key_header, key, whole;
    std::vector<std::string> pieces;  ///< of a stream: two texts, then the end
    std::string refusal;              ///< of a temperature
    provider_ptr (*make)(const live_world& w, std::vector<std::string>& warnings) = nullptr;
};

template <class Options>
Options with(const live_world& w, std::vector<std::string>& warnings)
{
    Options o("m");
    o.base_url(w.server.origin() + "/v1").key(secret("k")).log(log_sink([&warnings](log_level, std::string_view line) { warnings.emplace_back(line); }));
    return o;
}

std::string gemini_chunk(std::string_view text, std::string_view more)
{
    return R"({"candidates":[{"content":{"parts":[{"text":")" + std::string(text) + R"("}],"role":"model"})" + std::string(more) +
        R"(,"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3},"modelVersion":"m-1"})";
}

std::string ollama_line(std::string_view text, std::string_view more)
{
    return R"({"model":"m-1","message":{"role":"assistant","content":")" + std::string(text) + "\"}," + std::string(more) + "}\n";
}

const std::vector<wire>& both()
{
    static const std::vector<wire> out = [] {
        const std::string stop = R"(,"finishReason":"STOP")", done = R"("done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":3)";
        wire g, o;
        g.name = "gemini";
        g.target = "/v1/models/m:generateContent";
        g.streamed_target = "/v1/models/m:streamGenerateContent?alt=sse";
        g.key_header = "x-goog-api-key";
        g.key = "k";
        g.whole = gemini_chunk("Héllo 🌍", stop);
        g.pieces = {"data: " + gemini_chunk("Hé", "") + "\r\n\r\n", "data: " + gemini_chunk("llo 🌍", "") + "\r\n\r\n",
                    "data: " + gemini_chunk("", stop) + "\r\n\r\n"};
        g.refusal = R"({"error":{"code":400,"message":"`temperature` is deprecated for this model.","status":"INVALID_ARGUMENT"}})";
        g.make = [](const live_world& w, std::vector<std::string>& said) { return gemini(w.http, with<gemini_options>(w, said).temperature(0.2)); };
        o.name = "ollama";
        o.target = o.streamed_target = "/v1/api/chat";
        o.key_header = "authorization";
        o.key = "Bearer k";
        o.whole = ollama_line("Héllo 🌍", done);
        o.pieces = {ollama_line("Hé", R"("done":false)"), ollama_line("llo 🌍", R"("done":false)"), ollama_line("", done)};
        o.refusal = R"({"error":"`temperature` is deprecated for this model."})";
        o.make = [](const live_world& w, std::vector<std::string>& said) { return ollama(w.http, with<ollama_options>(w, said).temperature(0.2)); };
        return std::vector<wire>{g, o};
    }();
    return out;
}

std::string stream_head(const wire& w)
{
    return http_head(200, {{"content-type", w.name == "ollama" ? "application/x-ndjson" : "text/event-stream"}, {"transfer-encoding", "chunked"}});
}

std::string streamed(const wire& w)
{
    std::string out = stream_head(w);
    for (const std::string& p : w.pieces) out += http_chunk(p);
    return out + http_chunk("");
}

TEST(GeminiOllamaLive, AStreamAndOnePieceGiveTheSame)
{
    for (const wire& w : both()) {
        live_world world(byte_script().request().send(streamed(w)).request().send(http_response(200, w.whole)));
        std::vector<std::string> warnings;
        const provider_ptr p = w.make(world, warnings);
        EXPECT_EQ(p->name(), w.name);
        const observed_call seen = world.call(p, asking("hi"));
        ASSERT_TRUE(seen.result.has_value()) << seen.error().dump();
        EXPECT_EQ(seen.text, "Héllo 🌍");
        const generate_result one = world.generate(p, asking("hi"));
        for (const generate_result* r : {&*seen.result, &one}) {
            EXPECT_EQ(r->text, "Héllo 🌍") << w.name;
            EXPECT_EQ(r->model, "m-1") << w.name;
            EXPECT_EQ(r->stop_reason, "end_turn") << w.name;
            EXPECT_EQ(r->usage.value().input, 9U) << w.name;
            EXPECT_EQ(r->usage->output, 3U) << w.name;
        }
        EXPECT_EQ(world.server.log().request(0).target(), w.streamed_target);
        EXPECT_EQ(world.server.log().request(1).target(), w.target);
        EXPECT_EQ(world.server.log().request(0).header(w.key_header), w.key);
        EXPECT_TRUE(warnings.empty());
    }
}

TEST(GeminiOllamaLive, OneByteAtATime)
{
    for (const wire& w : both()) {
        std::string body;
        for (const std::string& p : w.pieces) body += http_chunk(p);
        live_world world(byte_script().request().send(stream_head(w)).trickle(body + http_chunk("")));
        std::vector<std::string> warnings;
        const observed_call seen = world.call(w.make(world, warnings), asking("hi"));
        ASSERT_TRUE(seen.result.has_value()) << seen.error().dump();
        EXPECT_EQ(seen.text, "Héllo 🌍") << w.name;
        EXPECT_EQ(seen.result->text, seen.text) << w.name;
    }
}

/// J01 and J02.
TEST(GeminiOllamaLive, ARefusedTemperatureIsLeftOutAndSaidOnce)
{
    for (const wire& w : both()) {
        live_world world(byte_script().request().send(http_response(400, w.refusal)).request().send(http_response(200, w.whole)).repeat());
        std::vector<std::string> warnings;
        const provider_ptr p = w.make(world, warnings);
        for (int i = 0; i < 2; ++i) EXPECT_TRUE(world.generate(p, asking("hi")).temperature_dropped) << w.name;
        EXPECT_EQ(warnings.size(), 1U) << w.name;
        ASSERT_EQ(world.server.log().requests(), 4U);
        EXPECT_NE(world.body(0).dump().find("temperature"), std::string::npos);
        EXPECT_EQ(world.body(1).dump().find("temperature"), std::string::npos);
    }
}

TEST(GeminiOllamaLive, ACutStreamKeepsItsText)
{
    for (const wire& w : both()) {
        live_world world(byte_script().request().send(stream_head(w) + http_chunk(w.pieces[0])).close());
        std::vector<std::string> warnings;
        const observed_call seen = world.call(w.make(world, warnings), asking("hi"));
        ASSERT_TRUE(seen.failure);
        EXPECT_EQ(seen.partial, "Hé") << w.name;
        EXPECT_EQ(seen.error()["bound"].as_string(), "transport") << w.name;
        EXPECT_TRUE(seen.error()["retryable"].as_bool()) << w.name;
    }
}

awaitable<void> read_for_ever(model_call* call, std::string* text)
{
    event_batch batch;
    for (bool more = true; more;) {
        more = co_await call->read(batch);
        for (const event& e : batch) *text += e.text();
    }
}

TEST(GeminiOllamaLive, CancellingClosesTheConnection)
{
    for (const wire& w : both()) {
        live_world world(byte_script().request().send(stream_head(w) + http_chunk(w.pieces[0])).stall());
        std::vector<std::string> warnings;
        const provider_ptr p = w.make(world, warnings);
        {
            const model_call_ptr call = p->start(asking("hi"));
            std::string text;
            asio::cancellation_signal signal;
            std::exception_ptr failure;
            asio::co_spawn(world.io, read_for_ever(call.get(), &text),
                           asio::bind_cancellation_slot(signal.slot(), [&failure](std::exception_ptr e) { failure = e; }));
            ASSERT_TRUE(testing::run_until(world.io, [&] { return text == "Hé"; })) << w.name;
            signal.emit(asio::cancellation_type::terminal);
            ASSERT_TRUE(testing::run_until(world.io, [&] { return failure != nullptr; })) << w.name;
            EXPECT_TRUE(is_cancellation(failure)) << w.name;
        }
        EXPECT_TRUE(testing::run_until(world.io, [&] { return world.server.log().open() == 0; })) << w.name;
        EXPECT_EQ(world.http.stats().open, 0U) << w.name;
    }
}

TEST(GeminiOllamaLive, AToolChoiceThatOllamaPassesOverIsSaidOnce)
{
    const wire& w = both()[1];
    live_world world(byte_script().request().send(http_response(200, w.whole)).repeat());
    std::vector<std::string> warnings;
    const provider_ptr p = w.make(world, warnings);
    generate_request request = asking("hi");
    auto tools = std::make_shared<std::vector<tool_schema>>();
    tools->emplace_back("find", "", json());
    request.tools = tools;
    request.options.tool_choice = "required";
    for (int i = 0; i < 2; ++i) EXPECT_EQ(world.generate(p, request).text, "Héllo 🌍");
    EXPECT_EQ(warnings.size(), 1U);
}

TEST(GeminiOllamaLive, OptionsAreReadByName)
{
    const json shared = json::parse_or_throw(R"({"apiKey":"k","model":"x","temperature":0.5,"maxTokens":7,"exposeErrorBody":true})", "test");
    EXPECT_EQ(gemini_options::from_json(shared).codec().model, "x");
    EXPECT_EQ(ollama_options::from_json(shared).codec().max_tokens, 7U);
    EXPECT_EQ(ollama_options::from_json(json::object().set("url", "http://10.0.0.1:1")).codec().base_url.host(), "10.0.0.1");
    EXPECT_EQ(gemini_options::from_json(json::object().set("baseUrl", "http://10.0.0.1:1")).codec().base_url.host(), "10.0.0.1");
    EXPECT_THROW(static_cast<void>(gemini_options::from_json(json::object().set("url", "http://10.0.0.1:1"))), validation_error);
    EXPECT_THROW(static_cast<void>(ollama_options::from_json(json::object().set("baseUrl", "http://10.0.0.1:1"))), validation_error);
}

}  // namespace gemini_ollama_live_test
}  // namespace
