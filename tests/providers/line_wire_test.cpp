// A wire of our own in place of a vendor's: what drives a codec must know none. It streams lines of `{"text"}`, `{"done"}` and `{"error"}`.
#include "live_world.hpp"

#include <reagent/model/wire_decoder.hpp>
#include <reagent/providers/http_provider.hpp>

#include <gtest/gtest.h>

namespace {
namespace line_wire_test {

using namespace reagent;
namespace testing = reagent::testing;
using namespace reagent::live_world_detail;

class line_options : public codec_options {
public:
    line_options() : codec_options("m", "http://127.0.0.1:1/") {}
};

class line_decoder final : public wire_decoder {
public:
    line_decoder(const wire_codec& codec, tool_list tools, std::string id) : wire_decoder(codec, std::move(tools), std::move(id)) {}
    decode_state on_event(std::string_view data, std::string_view, event_batch* out) override
    {
        const auto line = json::parse(data);
        if (!line) return answer_.fail_invalid_event(data);
        if (const json* error = line->find("error")) return answer_.fail_stream(*error);
        answer_.begin(out);
        if (const std::string* text = (*line)["text"].get_string()) answer_.add_text(*text, out);
        answer_.set_stop((*line)["done"].is_string() ? (*line)["done"].as_string() : std::string());
        return answer_.complete() ? finish(out) : decode_state::more;
    }
    decode_state on_body(std::string_view text, int status, event_batch* out) override
    {
        return json::parse(text) ? on_event(text, {}, out) : answer_.fail_invalid_body(text, status);
    }

private:
    decode_state finish(event_batch* out) override { return answer_.finish(answer_.raw_stop(), out); }
};

class line_codec final : public wire_codec {
public:
    explicit line_codec(line_options o = {})
        : wire_codec("LineProvider", "line", stream_framing::ndjson),
          options_(std::move(o)),
          plain_(options_.base_url.joined("/plain")),
          stream_(options_.base_url.joined("/stream"))
    {}
    const codec_options& options() const noexcept override { return options_; }
    const url& endpoint(bool stream) const noexcept override { return stream ? stream_ : plain_; }
    call_plan plan(const generate_request& request) const override
    {
        call_plan p = wire_codec::plan(request);
        if (!p.choice.empty()) p.notice = "toolChoice is passed over";
        return p;
    }
    thinking_ladder ladder(const call_plan&, std::optional<std::size_t>) const override { return {}; }
    wire_request encode(const generate_request&, const call_plan& plan, bool with_temperature, std::string_view, std::string& storage) const override
    {
        storage = with_temperature && plan.temperature ? "warm" : "cold";
        wire_request w;
        w.target = &endpoint(plan.stream);
        w.header_lines = "Content-Type: text/plain\r\n";
        w.body = storage;
        return w;
    }
    std::unique_ptr<wire_decoder> decoder(tool_list tools, std::string id) const override
    {
        return std::make_unique<line_decoder>(*this, std::move(tools), std::move(id));
    }
    bool refuses_temperature(std::string_view message, const call_plan&) const override { return message == "too warm"; }
    std::string_view request_id_header() const noexcept override { return "line-id"; }

private:
    line_options options_;
    url plain_, stream_;
};

const std::string lines = "{\"text\":\"a\xC3\xA9\"}\n\r\n  \n{\"text\":\"b\"}\r\n{\"done\":\"end_turn\"}\n";

/// Feeds `text` cut at `cut` and says what it leads to.
std::string outcome(std::string_view text, std::size_t cut, response_limits limits = {}, std::string_view type = "application/x-ndjson", bool asked = true)
{
    const line_codec codec;
    http_fields fields;
    if (!type.empty()) fields.add("content-type", type);
    fields.add("line-id", "id 7");
    response_decoder d(codec, {}, asked, 200, fields, system_time(), limits);
    event_batch out;
    d.feed(text.substr(0, cut), &out);
    d.feed(text.substr(std::min(cut, text.size())), &out);
    if (d.end(body_end::complete, &out) == decode_state::failed) {
        const provider_error e = d.answer().take_failure();
        return e.bound + (e.event.empty() ? "" : "/" + e.event) + ": " + e.message() + (e.partial ? " after " + e.partial->text : "");
    }
    const generate_result r = d.take_result();
    return r.request_id + ": " + r.text + " " + r.stop_reason;
}

TEST(LineWire, LinesAreCutAnywhere)
{
    for (std::size_t cut = 0; cut <= lines.size(); ++cut)
        ASSERT_EQ(outcome(lines, cut),
                  "id 7: a\xC3\xA9"
                  "b end_turn")
            << cut;
    EXPECT_EQ(outcome(lines, 5, {}, ""),
              "id 7: a\xC3\xA9"
              "b end_turn");
    EXPECT_EQ(outcome(lines, 5, {}, "application/x-ndjson", false),
              "id 7: a\xC3\xA9"
              "b end_turn");
    EXPECT_EQ(outcome(R"({"text":"c","done":"end_turn"})", 5, {}, "application/json"), "id 7: c end_turn");
}

TEST(LineWire, TheLastLineNeedsNoEndButMustBeWhole)
{
    const std::string text = lines.substr(0, lines.find("{\"done"));
    EXPECT_EQ(outcome(text + R"({"done":"end_turn"})", 3),
              "id 7: a\xC3\xA9"
              "b end_turn");
    EXPECT_EQ(outcome(text + R"({"done":"end_)", 3),
              "transport/premature-end: [LineProvider] response stream aborted before the body completed after a\xC3\xA9"
              "b");
    EXPECT_EQ(outcome(text + "{\n", 3),
              "invalid-event: [LineProvider] stream event is not JSON: { after a\xC3\xA9"
              "b");
    EXPECT_EQ(outcome(text + "{\"error\":\"boom\"}\n", 3),
              "stream-error: [LineProvider] boom after a\xC3\xA9"
              "b");
}

TEST(LineWire, ALineHasALimit)
{
    response_limits small;
    small.max_event = 40;
    const std::string told = "event-too-large: [LineProvider] a stream event passes the limit of 40 bytes after ";
    EXPECT_EQ(outcome("{\"text\":\"x\"}\n{\"text\":\"" + std::string(50, 'y') + "\"}\n", 7, small), told + "x");
    EXPECT_EQ(outcome("{\"text\":\"x\"}\n{\"text\":\"" + std::string(50, 'y'), 7, small), told + "x");
}

TEST(LineWire, TheDriverKnowsNoVendor)
{
    const std::string answer = testing::http_response(200, R"({"text":"ok","done":"end_turn"})");
    const std::string refusal = testing::http_response(400, error_body("too warm"));
    live_world world({byte_script().request().send(refusal).request().send(answer).request().send(refusal).request().send(answer)});
    line_options options;
    options.base_url = url::parse_or_throw(world.server.origin(), "test");
    options.temperature = 0.5;
    std::vector<std::string> said;
    http_call_options call;
    call.log = log_sink([&](log_level, std::string_view line) { said.emplace_back(line); });
    const provider_ptr p = make_http_provider(world.http, std::make_unique<line_codec>(options), call);
    EXPECT_EQ(p->name(), "line");
    for (int i = 0; i < 2; ++i) {
        generate_request request = asking("hi");
        auto tools = std::make_shared<std::vector<tool_schema>>();
        tools->emplace_back("find", "", json());
        request.tools = tools;
        request.options.tool_choice = "auto";
        const generate_result r = world.generate(p, std::move(request));
        EXPECT_EQ(r.text, "ok");
        EXPECT_TRUE(r.temperature_dropped);
        EXPECT_EQ(r.attempts, 2U);
    }
    EXPECT_EQ(world.server.log().request(0).body, "warm");
    EXPECT_EQ(world.server.log().request(1).body, "cold");
    EXPECT_EQ(world.server.log().request(1).target(), "/plain");
    const std::vector<std::string> expected = {"[LineProvider] toolChoice is passed over", "[LineProvider] the model takes no temperature; it is left out"};
    EXPECT_EQ(said, expected);
}

TEST(LineWire, FailuresOfTheWayNameTheProvider)
{
    byte_script script;
    script.request().send(testing::http_head(200, {{"content-type", "application/x-ndjson"}}) + "{\"text\":\"part\"}\n").half_close();
    live_world world(std::move(script));
    line_options options;
    options.base_url = url::parse_or_throw(world.server.origin(), "test");
    const observed_call seen = world.call(make_http_provider(world.http, std::make_unique<line_codec>(options)), asking("hi"));
    EXPECT_EQ(seen.text, "part");
    EXPECT_EQ(seen.error()["message"].as_string(), "[LineProvider] response stream aborted before the body completed");
    EXPECT_EQ(world.server.log().request(0).target(), "/stream");
}

}  // namespace line_wire_test
}  // namespace
