#include "live_world.hpp"

#include <reagent/base/base64.hpp>
#include <reagent/providers/http_provider.hpp>
#include <reagent/providers/wire_cases.hpp>
#include <reagent/providers/wires.hpp>
#include <reagent/testing/vector_match.hpp>

#include <gtest/gtest.h>

#include <regex>

namespace {
namespace wire_vectors_test {

using namespace reagent;
namespace testing = reagent::testing;
using namespace reagent::live_world_detail;

const std::string folder = REAGENT_SOURCE_DIR "/tests/vectors/";

/// The bytes a server sends for a case.
std::string response_text(const json& in, std::string& body)
{
    json headers = in["headers"];
    const json& plain = in["segments"];
    const json& coded = in["segments_b64"];
    for (const json& s : (plain.is_null() ? coded : plain).as_array()) body += plain.is_null() ? base64_decode(s.as_string()).value() : s.as_string();
    testing::header_list list;
    for (const auto& [k, v] : headers.as_object()) list.emplace_back(k, v.as_string());
    const std::string end = in["end"].as_string();
    const bool chunked = end == "chunked-end" || headers["transfer-encoding"].is_string();
    if (chunked && !headers["transfer-encoding"].is_string()) list.emplace_back("transfer-encoding", "chunked");
    std::string out = testing::http_head(static_cast<int>(*in["status"].get_int64()), list);
    if (!chunked) return out + body;
    for (std::size_t at = 0; at < body.size(); at += 1000) out += testing::http_chunk(std::string_view(body).substr(at, 1000));
    if (end == "chunked-end") out += testing::http_chunk("");
    return out;
}

/// What depends on the moment or on chance, out of the way.
std::string comparable(json answer)
{
    for (const char* part : {"result", "error"}) {
        json* j = answer.find(part);
        if (j == nullptr) continue;
        for (const char* key : {"timings", "rateLimit", "attempts"}) j->erase(key);
    }
    return std::regex_replace(answer.dump(), std::regex("call_[0-9a-f]{16}"), "call_id");
}

json live_answer(const json& in)
{
    std::string body;
    const std::string text = response_text(in, body);
    byte_script script;
    script.request().send(text);
    if (in["end"].as_string() == "eof") script.half_close();
    live_world world(std::move(script));
    json options = json::object(), call = json::object();
    for (const auto& [k, v] : in["options"].as_object()) {
        if (k == "toolChoice") call.set(k, v);
        else if (k != "tools" && k != "stream") options.set(k, v);
    }
    const std::string& name = in["provider"].as_string();
    options.set(name == "ollama" ? "url" : "baseUrl", world.server.origin() + "/v1");
    configured_wire wire = find_wire(name)->configure(options);
    generate_request request = asking("hi", in["stream"].as_bool());
    request.options = generate_options::from_json(call, "test");
    request.options.stream = in["stream"].as_bool();
    if (const json& tools = in["options"]["tools"]; tools.is_array()) {
        auto list = std::make_shared<std::vector<tool_schema>>();
        for (const json& t : tools.as_array()) list->emplace_back(t["name"].as_string(), "", t["parameters"]);
        request.tools = list;
    }
    const observed_call seen = world.call(make_http_provider(world.http, std::move(wire.codec), wire.call), std::move(request));
    if (seen.failure) return json::object().set("error", seen.error());
    EXPECT_EQ(seen.text, seen.result->text);
    return json::object().set("result", seen.result->to_json());
}

TEST(WireVectors, EveryDecodeCasePasses)
{
    const auto cases = testing::read_vectors(folder + "decode.jsonl");
    EXPECT_GE(cases.size(), 209U);
    for (const auto& c : cases) {
        const json answer = decode_case(c.in);
        EXPECT_EQ(testing::vector_mismatch(c.out, &answer), "") << c.id;
    }
}

TEST(WireVectors, EveryEncodeCasePasses)
{
    const auto cases = testing::read_vectors(folder + "encode.jsonl");
    EXPECT_GE(cases.size(), 126U);
    for (const auto& c : cases) {
        const json answer = encode_case(c.in);
        EXPECT_EQ(testing::vector_mismatch(c.out, &answer), "") << c.id;
    }
}

TEST(WireVectors, TheLivePathAnswersAsTheBatchCommand)
{
    // A reset may overtake its bytes and DeepSeek needs its own host: those are tested by hand. All others go through a real socket.
    std::size_t run = 0;
    for (const auto& c : testing::read_vectors(folder + "decode.jsonl")) {
        if (c.in["end"].as_string() == "reset" || c.in["options"]["baseUrl"].is_string()) continue;
        EXPECT_EQ(comparable(live_answer(c.in)), comparable(decode_case(c.in))) << c.id;
        ++run;
    }
    EXPECT_GE(run, 100U);
}

TEST(WireVectors, ACodedBodyCutBeforeItsEndIsACutOnBothPaths)
{
    // gzip of {"choices":[{"index":0,"message":{"content":"ok"},"finish_reason":"stop"}]}, and all but its last bytes.
    constexpr std::string_view coded =
        "H4sIAAAAAAACAw3IMQqAMAwF0Lv8uYNzriIipUYbxERMBiH07vrGl2jdpLGD5oToxi9oKrjYvR4MSjTTYA0Q7MQo2EXF+/pwddN/PezGWMYHEkze1EsAAAA=";
    for (const char* end : {"chunked-end", "eof"}) {
        for (const std::size_t kept : {std::size_t{20}, coded.size() - 12, coded.size()}) {
            json segments = json::array();
            segments.push_back(base64_encode(base64_decode(coded).value().substr(0, kept / 4 * 3)));
            const json in = json::object()
                                .set("provider", "openai")
                                .set("stream", false)
                                .set("status", 200)
                                .set("headers", json::object().set("content-type", "application/json").set("content-encoding", "gzip"))
                                .set("segments_b64", std::move(segments))
                                .set("options", json::object().set("apiKey", "k").set("model", "m"))
                                .set("end", end);
            const json batch = decode_case(in);
            EXPECT_EQ(comparable(live_answer(in)), comparable(batch)) << end << kept;
            if (kept == coded.size()) {
                EXPECT_EQ(batch["result"]["text"].as_string(), "ok");
                continue;
            }
            EXPECT_EQ(batch["error"]["bound"].as_string(), "transport") << end << kept;
            EXPECT_EQ(batch["error"]["event"].as_string(), "aborted") << end << kept;
            EXPECT_TRUE(batch["error"]["retryable"].as_bool()) << end << kept;
        }
    }
}

TEST(WireVectors, ABadLineIsAnsweredAsUsage)
{
    const auto kind = [](const char* text, json (*run)(const json&)) {
        const json answer = run(json::parse_or_throw(text, "test"));
        EXPECT_FALSE(answer["error"]["message"].as_string().empty());
        return answer["error"]["kind"].as_string();
    };
    EXPECT_EQ(kind("7", &decode_case), "usage");
    EXPECT_EQ(kind(R"({"provider":"nope"})", &decode_case), "usage");
    EXPECT_EQ(kind(R"({"provider":"nope"})", &encode_case), "usage");
    EXPECT_EQ(kind(R"({"provider":"openai"})", &decode_case), "usage");
    EXPECT_EQ(kind(R"({"provider":"openai","segments":[7]})", &decode_case), "usage");
    EXPECT_EQ(kind(R"({"provider":"openai","segments_b64":["%"],"status":200})", &decode_case), "usage");
    EXPECT_EQ(kind(R"({"provider":"openai","segments":[],"status":7})", &decode_case), "usage");
    EXPECT_EQ(kind(R"({"provider":"openai","segments":[],"status":200,"options":{"nope":1}})", &decode_case), "validation");
    EXPECT_EQ(kind(R"({"provider":"openai","messages":7})", &encode_case), "validation");
    EXPECT_EQ(decode_case(json::parse_or_throw(R"({"id":"x","provider":"nope"})", "test")).dump(),
              R"({"id":"x","error":{"kind":"usage","message":"unknown provider nope; known are )" + wire_names() + R"("}})");
}

}  // namespace wire_vectors_test
}  // namespace
