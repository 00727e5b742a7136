#include <reagent/base/error.hpp>
#include <reagent/testing/manual_clock.hpp>
#include <reagent/testing/mock_server.hpp>
#include <reagent/testing/run.hpp>

#include "raw_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {
namespace mock_server_test {

using namespace reagent;
using namespace reagent::testing;
using testing_tests::async_reader;
using testing_tests::raw_client;

std::string post(std::string_view body, std::string_view more = {})
{
    return "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer hidden\r\n" + std::string(more) +
        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::string chat_body(std::string_view text, bool stream = false, std::string_view more = R"(,"max_tokens":100)")
{
    return R"({"model":"m","messages":[{"role":"user","content":")" + std::string(text) + R"("}],"stream":)" + (stream ? "true" : "false") +
        R"(,"stream_options":{"include_usage":true})" + std::string(more) + "}";
}

mock_options with(std::string_view fixtures)
{
    mock_options o;
    o.fixtures(parse_mock_fixtures("{\"fixtures\":[" + std::string(fixtures) + "]}", "test"));
    return o;
}

struct answer {
    int status = 0;
    std::string head, body;
    json parsed() const { return json::parse_or_throw(body, "body"); }
};

answer split(const std::string& raw)
{
    answer a;
    const std::size_t at = raw.find("\r\n\r\n");
    a.head = raw.substr(0, at);
    if (at != std::string::npos) a.body = raw.substr(at + 4);
    if (raw.size() > 12) a.status = std::atoi(raw.c_str() + 9);
    return a;
}

answer ask(const mock_server& server, const std::string& request)
{
    raw_client client(server.port());
    client.write(request);
    return split(client.response());
}

/// The events of a chunked stream, without `data: `.
std::vector<std::string> events(const std::string& body)
{
    std::vector<std::string> out;
    for (std::size_t at = body.find("data: "); at != std::string::npos;) {
        const std::size_t end = body.find("\n\n", at);
        out.push_back(body.substr(at + 6, end - at - 6));
        at = body.find("data: ", end == std::string::npos ? body.size() : end);
    }
    return out;
}

/// Text, argument text by call, finish reason and usage of a stream.
struct folded {
    std::string text, finish;
    std::vector<std::string> names, ids, arguments;
    json usage;
    bool done = false;
};

folded fold(const std::string& body)
{
    folded f;
    for (const std::string& e : events(body)) {
        if (e == "[DONE]") {
            f.done = true;
            continue;
        }
        const json j = json::parse_or_throw(e, "event");
        if (j.find("usage") != nullptr) f.usage = j["usage"];
        const json& choice = j["choices"][0];
        if (const std::string* s = choice["delta"]["content"].get_string()) f.text += *s;
        if (const std::string* s = choice["finish_reason"].get_string()) f.finish = *s;
        const json& call = choice["delta"]["tool_calls"][0];
        if (call.is_null()) continue;
        const auto i = static_cast<std::size_t>(*call["index"].get_uint64());
        if (f.names.size() <= i) { f.names.resize(i + 1), f.ids.resize(i + 1), f.arguments.resize(i + 1); }
        if (const std::string* s = call["id"].get_string()) f.ids[i] = *s;
        if (const std::string* s = call["function"]["name"].get_string()) f.names[i] = *s;
        if (const std::string* s = call["function"]["arguments"].get_string()) f.arguments[i] += *s;
    }
    return f;
}

TEST(MockServer, EchoesWithoutFixturesAndServesItsOtherPaths)
{
    mock_server server;
    const json j = ask(server, post(chat_body("hi \\u00e9"))).parsed();
    EXPECT_EQ(j["choices"][0]["message"]["content"], json("You said: hi é"));
    EXPECT_EQ(j["choices"][0]["finish_reason"], json("stop"));
    EXPECT_EQ(j["id"], json("chatcmpl-mock-1"));
    EXPECT_EQ(j["model"], json("m"));
    EXPECT_GT(j["usage"]["prompt_tokens"].get_uint64(), 0u);
    EXPECT_EQ(ask(server, "GET /health HTTP/1.1\r\nHost: mock\r\n\r\n").status, 200);
    EXPECT_EQ(ask(server, "GET /v1/models HTTP/1.1\r\nHost: mock\r\n\r\n").parsed()["data"][0]["id"], json("mock"));
    EXPECT_EQ(ask(server, "GET /v2 HTTP/1.1\r\nHost: mock\r\n\r\n").parsed()["error"]["code"], json("unknown_url"));
    EXPECT_EQ(ask(server, "GET /v1/chat/completions HTTP/1.1\r\nHost: mock\r\n\r\n").status, 405);
    EXPECT_EQ(ask(server, post("{]")).parsed()["error"]["message"], json("the body is not JSON at byte 1"));
    EXPECT_EQ(ask(server, "nonsense\r\n\r\n").status, 400);
    EXPECT_EQ(ask(server, "GET / HTTP/1.1\r\nX: " + std::string(70'000, 'x')).status, 431);
    EXPECT_EQ(ask(server, "POST / HTTP/1.1\r\nHost: mock\r\nContent-Length: 99999999999\r\n\r\n").status, 413);
    EXPECT_EQ(ask(server, "GET /__stats HTTP/1.1\r\nHost: mock\r\n\r\n").parsed()["requests"].get_uint64(), 2u);
}

TEST(MockServer, TheFirstFixtureThatMatchesAnswers)
{
    mock_server server(with(R"(
        {"match":{"sequenceIndex":1,"userMessage":"twice"},"response":{"content":"second time"}},
        {"match":{"userMessage":"twice"},"response":{"content":"other times"}},
        {"match":{"hasToolResult":true},"response":{"content":"after a tool"}},
        {"match":{"turnIndex":2},"response":{"content":"third turn"}},
        {"match":{"toolName":"clock"},"response":{"content":"has clock"}},
        {"match":{"model":"big"},"response":{"content":"big model"}},
        {"match":{"userMessage":"ello"},"response":{"content":"greeting"}})"));
    const auto said = [&](const std::string& body) { return ask(server, post(body)).parsed()["choices"][0]["message"]["content"]; };
    EXPECT_EQ(said(chat_body("hello")), json("greeting"));
    EXPECT_EQ(
        said(
            R"({"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":null},{"role":"tool","tool_call_id":"c","content":"1"}]})"),
        json("after a tool"));
    EXPECT_EQ(
        said(R"({"model":"m","messages":[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"c","content":"1"},{"role":"user","content":"hello"}]})"),
        json("greeting"))
        << "a tool result before the last user message is history";
    EXPECT_EQ(said(R"({"model":"m","messages":[{"role":"assistant","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"a"}]})"),
              json("third turn"));
    EXPECT_EQ(said(R"({"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"clock"}}]})"), json("has clock"));
    EXPECT_EQ(said(R"({"model":"big","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]})"), json("big model"));
    EXPECT_EQ(said(chat_body("twice")), json("other times"));
    EXPECT_EQ(said(chat_body("twice")), json("second time"));
    EXPECT_EQ(said(chat_body("twice")), json("other times"));
    const answer none = ask(server, post(chat_body("bye")));
    EXPECT_EQ(none.status, 404);
    EXPECT_EQ(none.parsed()["error"]["code"], json("no_fixture_match"));
}

TEST(MockServer, TextAndToolCallsAsOneAnswerAndAsAStream)
{
    mock_server server(with(
        R"({"response":{"content":"let me üse tools","toolCalls":[{"name":"add","arguments":{"a":1,"b":"two words"}},{"name":"now","arguments":"{}","id":"mine"}]},
        "usage":{"prompt_tokens":11,"completion_tokens":7},"chunkSize":4})"));
    const json whole = ask(server, post(chat_body("x"))).parsed();
    const json& message = whole["choices"][0]["message"];
    EXPECT_EQ(message["content"], json("let me üse tools"));
    EXPECT_EQ(message["tool_calls"][0]["id"], json("call_1_1"));
    EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], json(R"({"a":1,"b":"two words"})"));
    EXPECT_EQ(message["tool_calls"][1]["id"], json("mine"));
    EXPECT_EQ(whole["choices"][0]["finish_reason"], json("tool_calls"));

    const answer streamed = ask(server, post(chat_body("x", true)));
    EXPECT_NE(streamed.head.find("text/event-stream"), std::string::npos);
    const folded f = fold(streamed.body);
    EXPECT_EQ(f.text, "let me üse tools");
    EXPECT_EQ(f.names, (std::vector<std::string>{"add", "now"}));
    EXPECT_EQ(f.ids, (std::vector<std::string>{"call_2_1", "mine"}));
    EXPECT_EQ(f.arguments, (std::vector<std::string>{R"({"a":1,"b":"two words"})", "{}"}));
    EXPECT_EQ(f.finish, "tool_calls");
    EXPECT_EQ(f.usage, whole["usage"]);
    EXPECT_TRUE(f.done);
    EXPECT_GT(events(streamed.body).size(), 10u);
}

TEST(MockServer, UsageOnAStreamOnlyWhenAsked)
{
    mock_server server;
    const std::string body = R"({"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]})";
    const folded f = fold(ask(server, post(body)).body);
    EXPECT_TRUE(f.usage.is_null());
    EXPECT_EQ(f.finish, "stop");
}

TEST(MockServer, KeepsConnectionsAndServesPipelinedChunkedAndExpectingClients)
{
    mock_server server;
    raw_client client(server.port());
    client.write(post(chat_body("one")) + post(chat_body("two")));
    EXPECT_NE(client.response().find("You said: one"), std::string::npos);
    EXPECT_NE(client.response().find("You said: two"), std::string::npos);
    const std::string body = chat_body("three");
    client.write("POST /v1/chat/completions HTTP/1.1\r\nHost: mock\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (const char c : body) client.write(std::string("1\r\n") + c + "\r\n");
    client.write("0\r\n\r\n");
    EXPECT_NE(client.response().find("You said: three"), std::string::npos);
    const std::string whole = post(chat_body("four"), "Expect: 100-continue\r\n");
    const std::size_t head = whole.find("\r\n\r\n") + 4;
    client.write(whole.substr(0, head));
    EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.write(whole.substr(head));
    EXPECT_NE(client.response().find("You said: four"), std::string::npos);
    client.write(post(chat_body("five"), "Connection: close\r\n"));
    EXPECT_NE(client.read_all().find("You said: five"), std::string::npos) << "and the server closes";
    EXPECT_EQ(server.stats().connections, 1u);
    EXPECT_EQ(server.stats().answered, 5u);
}

TEST(MockServer, Fault429CarriesRetryAfterAndLastsItsTimes)
{
    mock_server server(with(R"({"response":{"content":"ok"},"fault":{"kind":"status","status":429,"retry_after_s":3,"times":1}})"));
    const answer a = ask(server, post(chat_body("x")));
    EXPECT_EQ(a.status, 429);
    EXPECT_NE(a.head.find("Retry-After: 3"), std::string::npos);
    EXPECT_EQ(a.parsed()["error"]["type"], json("rate_limit_error"));
    EXPECT_EQ(ask(server, post(chat_body("x"))).status, 200);
    ASSERT_TRUE(server.wait_until([](const mock_stats& s) { return s.answered == 2; }));
    EXPECT_EQ(server.stats().faults.at("429"), 1u);
    EXPECT_EQ(server.stats().output_tokens, 1u) << "an error uses nothing";
}

TEST(MockServer, ErrorsByFixtureAndHtmlPages)
{
    mock_server server(with(R"({"match":{"userMessage":"err"},"response":{"error":{"status":503,"message":"down","type":"t","code":"c"}}},
        {"response":{"content":"x"},"fault":{"kind":"html","status":504}})"));
    const answer e = ask(server, post(chat_body("err")));
    EXPECT_EQ(e.status, 503);
    EXPECT_EQ(e.body, R"({"error":{"message":"down","type":"t","code":"c"}})");
    const answer page = ask(server, post(chat_body("x")));
    EXPECT_EQ(page.status, 504);
    EXPECT_NE(page.head.find("text/html"), std::string::npos);
    EXPECT_EQ(page.body.substr(0, 6), "<html>");
}

TEST(MockServer, FaultResetAfterNBytes)
{
    mock_server server(with(R"({"response":{"content":"a long enough answer"},"fault":{"kind":"reset","after_bytes":300}})"));
    raw_client client(server.port());
    client.write(post(chat_body("x", true)));
    EXPECT_EQ(client.read_all().size(), 300u);
    EXPECT_EQ(client.last_error(), ECONNRESET);
    ASSERT_TRUE(server.wait_until([](const mock_stats& s) { return s.cut == 1; }));
    const auto entry = server.journal().at(0);
    EXPECT_EQ(entry.end, "reset");
    EXPECT_EQ(entry.sent, 300u);
}

TEST(MockServer, FaultCloseAfterNBytes)
{
    mock_server server(with(R"({"response":{"content":"a long enough answer"},"fault":{"kind":"close","after_bytes":300}})"));
    raw_client client(server.port());
    client.write(post(chat_body("x", true)));
    EXPECT_EQ(client.read_all().size(), 300u);
    EXPECT_EQ(client.last_error(), 0);
    EXPECT_EQ(server.journal().at(0).end, "closed");
}

TEST(MockServer, FaultStallIsSilentUntilTheClientGoes)
{
    mock_server server(with(R"({"response":{"content":"a long enough answer"},"fault":{"kind":"stall","after_bytes":250}})"));
    {
        raw_client client(server.port());
        client.write(post(chat_body("x", true)));
        EXPECT_EQ(client.read(250).size(), 250u);
        EXPECT_FALSE(client.readable(20));
        EXPECT_EQ(server.stats().open, 1u);
        EXPECT_EQ(server.journal().at(0).end, "open");
    }
    ASSERT_TRUE(server.wait_until([](const mock_stats& s) { return s.open == 0; }));
    EXPECT_EQ(server.journal().at(0).end, "client_fin");
    EXPECT_EQ(server.stats().cut, 1u);
}

TEST(MockServer, FaultTrickleSendsEveryByteAlone)
{
    asio::io_context context(1);
    mock_server server(context.get_executor(), with(R"({"response":{"content":"hello"},"fault":{"kind":"trickle"}})"));
    async_reader reader(context, server.port(), post(chat_body("x"), "Connection: close\r\n"));
    ASSERT_TRUE(run_until(context, [&] { return reader.ended(); }));
    EXPECT_NE(reader.text().find("\"hello\""), std::string::npos);
    EXPECT_GT(reader.reads(), reader.text().size() / 4) << "some bytes may be read together";
}

TEST(MockServer, FaultMalformedJson)
{
    mock_server server(with(R"({"response":{"content":"hello there"},"chunkSize":3,"fault":{"kind":"malformed_json"}})"));
    const answer a = ask(server, post(chat_body("x")));
    EXPECT_EQ(a.status, 200);
    EXPECT_FALSE(json::parse(a.body));
    const answer s = ask(server, post(chat_body("x", true)));
    std::size_t bad = 0;
    for (const std::string& e : events(s.body)) bad += e != "[DONE]" && !json::parse(e) ? 1 : 0;
    EXPECT_EQ(bad, 1u);
    EXPECT_EQ(events(s.body).back(), "[DONE]");
}

TEST(MockServer, FaultTruncatedArguments)
{
    mock_server server(with(R"({"response":{"toolCalls":[{"name":"f","arguments":{"city":"Rome"}}]},"fault":{"kind":"truncated_arguments"}})"));
    const json whole = ask(server, post(chat_body("x"))).parsed();
    EXPECT_EQ(whole["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], json(R"({"city")"));
    const folded f = fold(ask(server, post(chat_body("x", true))).body);
    EXPECT_EQ(f.arguments.at(0), R"({"city")");
    EXPECT_EQ(f.finish, "tool_calls");
    EXPECT_TRUE(f.done);
}

TEST(MockServer, FaultMissingDoneMissingFinishAndErrorEvent)
{
    mock_server server(with(R"(
        {"match":{"userMessage":"done"},"response":{"content":"hello"},"fault":{"kind":"missing_done"}},
        {"match":{"userMessage":"finish"},"response":{"content":"hello"},"fault":{"kind":"missing_finish"}},
        {"match":{"userMessage":"event"},"response":{"content":"hello"},"chunkSize":1,"fault":{"kind":"error_event","after_events":3,"status":400,"message":"no"}})"));
    const folded done = fold(ask(server, post(chat_body("done", true))).body);
    EXPECT_FALSE(done.done);
    EXPECT_EQ(done.finish, "stop");
    const folded finish = fold(ask(server, post(chat_body("finish", true))).body);
    EXPECT_FALSE(finish.done);
    EXPECT_EQ(finish.finish, "");
    EXPECT_EQ(finish.text, "hello");
    const std::vector<std::string> all = events(ask(server, post(chat_body("event", true))).body);
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all.back(), R"({"error":{"message":"no","type":"server_error","code":400}})");
    EXPECT_EQ(ask(server, post(chat_body("event"))).status, 400);
}

TEST(MockServer, FaultsByRateComeFromTheSeed)
{
    const auto statuses = [](std::uint64_t seed) {
        mock_options o;
        o.seed(seed);
        parse_fault_rates("429=0.25,500=0.25", o);
        mock_server server(std::move(o));
        raw_client client(server.port());
        std::string out;
        for (int i = 0; i < 200; ++i) {
            client.write(post(chat_body("x")));
            out += std::to_string(split(client.response()).status)[0];
        }
        EXPECT_EQ(server.stats().requests, 200u);
        return out;
    };
    const std::string first = statuses(7);
    EXPECT_EQ(first, statuses(7));
    EXPECT_NE(first, statuses(8));
    const auto failed = std::count_if(first.begin(), first.end(), [](char c) { return c != '2'; });
    EXPECT_GT(failed, 70);
    EXPECT_LT(failed, 130);
}

TEST(MockServer, PacingFollowsTheClockItIsGiven)
{
    using namespace std::chrono_literals;
    asio::io_context context(1);
    const auto clock = std::make_shared<manual_clock>();
    mock_options o = with(R"({"response":{"content":"abcd"},"chunkSize":2,"latency_ms":100,"gap_ms":10})");
    o.clock(clock);
    mock_server server(context.get_executor(), std::move(o));
    async_reader reader(context, server.port(), post(chat_body("x", true), "Connection: close\r\n"));
    ASSERT_TRUE(run_until(context, [&] { return clock->armed() == 1; }));
    EXPECT_EQ(reader.text(), "");
    clock->advance(99ms);
    run_until_idle(context);
    EXPECT_EQ(reader.text(), "");
    clock->advance(1ms);
    std::size_t steps = 0;
    for (; !reader.ended(); ++steps) {
        run_until_idle(context);
        EXPECT_EQ(events(reader.text()).size(), std::min<std::size_t>(steps + 1, 6)) << "one event a step";
        clock->advance(10ms);
    }
    EXPECT_EQ(fold(reader.text()).text, "abcd");
    EXPECT_NEAR(server.journal().at(0).duration_ms, 150, 1e-6) << "latency and five gaps";
}

TEST(MockServer, TheJournalTellsWhatWasSentAndHidesCredentials)
{
    std::vector<std::string> told;
    mock_options o;
    o.on_entry([&told](const mock_entry& e) { told.push_back(e.end); });
    auto server = std::make_unique<mock_server>(std::move(o));
    const std::string body = chat_body("hi");
    ask(*server, post(body));
    ask(*server, "GET /nothing HTTP/1.1\r\nHost: mock\r\nX-Test: yes\r\n\r\n");
    const answer lines = ask(*server, "GET /__journal HTTP/1.1\r\nHost: mock\r\n\r\n");
    EXPECT_NE(lines.head.find("application/x-ndjson"), std::string::npos);
    EXPECT_EQ(lines.body.find("hidden"), std::string::npos);
    const std::size_t end = lines.body.find('\n');
    const json first = json::parse_or_throw(lines.body.substr(0, end), "line");
    EXPECT_EQ(first["sequence"].get_uint64(), 1u);
    EXPECT_EQ(first["headers"]["authorization"], json("***"));
    EXPECT_EQ(first["body"]["messages"][0]["content"], json("hi"));
    EXPECT_EQ(first["body_bytes"].get_uint64(), body.size());
    EXPECT_EQ(first["worst_input_tokens"].get_uint64(), body.size());
    EXPECT_EQ(first["worst_output_tokens"].get_uint64(), 100u);
    EXPECT_EQ(first["status"].get_uint64(), 200u);
    EXPECT_EQ(first["end"], json("complete"));
    EXPECT_EQ(first["fixture"].get_uint64(), 0u);
    const json second = json::parse_or_throw(lines.body.substr(end + 1, lines.body.find('\n', end + 1) - end - 1), "line");
    EXPECT_EQ(second["path"], json("/nothing"));
    EXPECT_EQ(second["headers"]["x-test"], json("yes"));
    server.reset();
    EXPECT_EQ(told, (std::vector<std::string>{"complete", "complete"}));
}

TEST(MockServer, TheJournalIsBounded)
{
    mock_options o;
    o.max_journal(3);
    mock_server server(std::move(o));
    for (int i = 0; i < 5; ++i) ask(server, post(chat_body("x")));
    ASSERT_EQ(server.journal().size(), 3u);
    EXPECT_EQ(server.journal().front().sequence, 3u);
}

TEST(MockServer, ExposureIsTheWorstCaseOfOpenRequestsPlusTheUsageOfAnsweredOnes)
{
    mock_options o =
        with(R"({"match":{"userMessage":"hang"},"response":{"content":"a"},"fault":{"kind":"stall"},"usage":{"prompt_tokens":1,"completion_tokens":1}},
        {"match":{"userMessage":"worst"},"response":{"content":"a"},"usage":"worst_case"},
        {"response":{"content":"a"},"usage":{"prompt_tokens":3,"completion_tokens":4}})");
    o.rates(usd("1"), usd("10"));
    mock_server server(std::move(o));
    const auto price = [](std::size_t input, std::size_t output) { return usd::from_nanos(static_cast<std::int64_t>(input * 1000 + output * 10'000)); };

    const std::string small = chat_body("x");
    ask(server, post(small));
    EXPECT_EQ(server.journal()[0].exposure, price(small.size(), 100)) << "at its arrival a request stands at its worst";
    ASSERT_TRUE(server.wait_until([](const mock_stats& s) { return s.answered == 1; }));
    EXPECT_EQ(server.stats().exposure, price(3, 4)) << "answered, it stands at its usage";

    const std::string hang = chat_body("hang");
    auto client = std::make_unique<raw_client>(server.port());
    client->write(post(hang));
    ASSERT_TRUE(server.wait_until([](const mock_stats& s) { return s.open == 1; }));
    const std::string worst = chat_body("worst", false, R"(,"max_completion_tokens":50)");
    const json answered = ask(server, post(worst)).parsed();
    EXPECT_EQ(answered["usage"]["prompt_tokens"].get_uint64(), worst.size());
    EXPECT_EQ(answered["usage"]["completion_tokens"].get_uint64(), 50u);
    const usd most = price(3, 4) + price(hang.size(), 100) + price(worst.size(), 50);
    EXPECT_EQ(server.journal()[2].exposure, most);
    EXPECT_EQ(server.journal()[2].open, 2u);
    EXPECT_EQ(server.stats().max_exposure, most);

    // A client that has gone before the next arrival no longer stands at its worst.
    client.reset();
    const std::string large = chat_body("worst", false, R"(,"max_completion_tokens":400)");
    ask(server, post(large));
    EXPECT_EQ(server.journal()[3].exposure, price(3, 4) + price(1, 0) + price(worst.size(), 50) + price(large.size(), 400));
    EXPECT_EQ(server.journal()[3].open, 1u);
    EXPECT_EQ(server.stats().max_exposure, server.journal()[3].exposure);
    EXPECT_EQ(server.journal()[1].end, "client_fin");
}

TEST(MockServer, AClientThatGoesWithBytesUnreadStandsAtItsWorstNoLonger)
{
    mock_options o = with(R"({"match":{"userMessage":"hang"},"response":{"content":"a"},"fault":{"kind":"stall","after_bytes":60},
        "usage":{"prompt_tokens":1,"completion_tokens":0}},{"response":{"content":"a"}})");
    o.rates(usd("1"), usd("1"));
    mock_server server(std::move(o));
    for (int i = 0; i < 20; ++i) {
        auto client = std::make_unique<raw_client>(server.port());
        client->write(post(chat_body("hang")));
        EXPECT_EQ(client->read(10).size(), 10u);
        client.reset();  // a reset: the kernel drops what was not read
        ask(server, post(chat_body("x")));
        EXPECT_EQ(server.journal().back().open, 1u);
    }
}

TEST(MockServer, TwoHundredStreamsAtOnceOnASharedContext)
{
    using namespace std::chrono_literals;
    constexpr std::size_t streams = 200;
    asio::io_context context(1);
    const auto clock = std::make_shared<manual_clock>();
    mock_options o = with(R"({"response":{"content":"0123456789"},"chunkSize":1,"gap_ms":5})");
    o.clock(clock);
    mock_server server(context.get_executor(), std::move(o));
    std::vector<std::unique_ptr<async_reader>> readers;
    for (std::size_t i = 0; i < streams; ++i) {
        readers.push_back(std::make_unique<async_reader>(context, server.port(), post(chat_body("x", true), "Connection: close\r\n")));
    }
    ASSERT_TRUE(run_until(context, [&] { return server.stats().open == streams; }));
    const auto ended = [&] { return std::all_of(readers.begin(), readers.end(), [](const auto& r) { return r->ended(); }); };
    ASSERT_TRUE(run_until(context, *clock, ended));
    for (const auto& r : readers) {
        const folded f = fold(r->text());
        EXPECT_EQ(f.text, "0123456789");
        EXPECT_TRUE(f.done);
    }
    EXPECT_EQ(server.stats().max_open, streams);
    EXPECT_EQ(server.stats().answered, streams);
    server.stop();
    context.run();
    EXPECT_TRUE(context.stopped());
}

TEST(MockServer, StopsWithOpenStreamsAndSaysWhenItsPortIsTaken)
{
    mock_server server(with(R"({"response":{"content":"x"},"fault":{"kind":"stall"}})"));
    raw_client client(server.port());
    client.write(post(chat_body("x")));
    ASSERT_TRUE(server.wait_until([](const mock_stats& s) { return s.open == 1; }));
    mock_options same;
    same.port(server.port());
    try {
        mock_server second(std::move(same));
        ADD_FAILURE() << "the port is taken";
    } catch (const error& e) {
        EXPECT_EQ(std::string(e.what()), "cannot listen on 127.0.0.1:" + std::to_string(server.port()) + ": Address already in use");
    }
    server.stop();
    client.read_all();
    ASSERT_TRUE(server.wait_until([](const mock_stats& s) { return s.open == 0; }));
    EXPECT_EQ(server.journal().at(0).end, "stopped");
}

}  // namespace mock_server_test
}  // namespace
