// Agents inside a program of yours: your io_context, your thread, any completion token. Three conversations run at once, one is cancelled half
// way, and the host keeps its transcript. The model service is a loopback server of reagent::testing, so nothing leaves the machine.
#include <reagent/net/websocket.hpp>
#include <reagent/reagent.hpp>
#include <reagent/testing/byte_server.hpp>
#include <reagent/testing/http_text.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <iostream>
#include <thread>

namespace asio = boost::asio;

namespace {

struct track_args {
    std::string order_id;
};
BOOST_DESCRIBE_STRUCT(track_args, (), (order_id))

/// What the host owns and wires. Everything runs on the executor it hands in.
class help_desk {
public:
    help_desk(asio::any_io_executor ex, const std::string& service)
        : executor_(ex),
          http_(ex),
          model_(reagent::openai_chat(http_, reagent::openai_options("gpt-4o-mini").base_url(service).key(reagent::secret("sk-example")))),
          agent_(ex, model_,
                 reagent::agent_options().system("You are a help desk.").tool(reagent::make_tool("track", "Finds a parcel.", [this](track_args args) {
                     return track(std::move(args));
                 })))
    {}
    const reagent::agent& agent() const noexcept { return agent_; }

    /// Called when a tool starts to wait for the carrier.
    std::function<void()> on_tracking;

private:
    // A tool is a coroutine on the host's executor. The carrier of this one never answers; cancelling the run ends the wait.
    reagent::awaitable<std::string> track(track_args args)
    {
        if (on_tracking) on_tracking();
        asio::steady_timer carrier(executor_, std::chrono::hours(1));
        co_await carrier.async_wait(asio::use_awaitable);
        co_return "order " + args.order_id + " is on its way";
    }

    asio::any_io_executor executor_;
    reagent::http_client http_;
    reagent::provider_ptr model_;
    reagent::agent agent_;
};

int failures = 0;
void expect(bool held, std::string_view what)
{
    std::cout << (held ? "ok      " : "FAILED  ") << what << '\n';
    if (!held) ++failures;
}

// 1. From a coroutine of the host: read events as they come.
reagent::awaitable<void> ask_in_a_coroutine(const help_desk& desk)
{
    reagent::run run = desk.agent().start("Are you open today?");
    reagent::event_batch events;
    std::string shown;
    for (;;) {
        const bool more = co_await run.read(events);
        for (const reagent::event& e : events) shown += e.text();
        if (!more) break;
    }
    expect(run.result().completed() && shown == "We are open.", "coroutine: the answer streams in and is complete");
}

// 4. A WebSocket, read until its peer says goodbye.
reagent::awaitable<std::size_t> follow(reagent::http_client http, reagent::url feed, reagent::websocket_options options)
{
    reagent::websocket socket = co_await reagent::websocket::connect(http, feed, options);
    co_await socket.send_text("subscribe");
    reagent::websocket_message message;
    std::size_t messages = 0;
    for (;;) {
        const bool more = co_await socket.read(message);
        if (!more) break;  // closed properly; socket.close_code() says how
        ++messages;
    }
    co_return messages;
}

void rethrow(std::exception_ptr failure)
{
    if (failure) std::rethrow_exception(failure);
}

std::string text_stream(std::vector<std::string> deltas)
{
    return reagent::testing::sse_response(reagent::testing::openai_events(std::move(deltas)));
}
std::string tool_stream()
{
    return reagent::testing::sse_response({
        R"({"id":"c1","model":"gpt-4o-mini","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function",)"
        R"("function":{"name":"track","arguments":"{\"order_id\":\"17\"}"}}]},"finish_reason":null}]})",
        R"({"id":"c1","model":"gpt-4o-mini","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]})",
        "[DONE]",
    });
}

// A peer that takes any WebSocket whose key is all zeros, sends two messages and closes.
reagent::testing::byte_script feed_script()
{
    return reagent::testing::byte_script().request().send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n\r\n"
        "\x81\x03one\x81\x03two\x88\x02\x03\xe8");
}

}  // namespace

int main()
{
    reagent::testing::byte_server talkative(reagent::testing::byte_script::answering(text_stream({"We are ", "open."})));
    reagent::testing::byte_server tracking(reagent::testing::byte_script::answering(tool_stream()));

    asio::io_context context;  // the host's
    help_desk desk(context.get_executor(), talkative.origin() + "/v1");
    help_desk warehouse(context.get_executor(), tracking.origin() + "/v1");

    asio::co_spawn(context, ask_in_a_coroutine(desk), &rethrow);

    // 2. With a callback and a cancellation slot: the caller hangs up while the tool waits.
    asio::cancellation_signal hang_up;
    warehouse.on_tracking = [&] { asio::post(context, [&] { hang_up.emit(asio::cancellation_type::terminal); }); };
    warehouse.agent().async_run(
        reagent::run_request("Where is order 17?"), asio::bind_cancellation_slot(hang_up.slot(), [](reagent::error_code ec, reagent::run_result result) {
            expect(!ec && result.outcome() == reagent::run_outcome::cancelled, "callback: a cancelled run still completes with a result");
            expect(result.messages().size() == 4, "callback: its transcript holds system, question, tool call and the sealed tool result");
            expect(reagent::check_transcript(result.messages()).empty(), "callback: and is valid, so the conversation can go on");
            std::cout << reagent::transcript_to_json(result.messages()).dump_pretty() << '\n';
        }));

    // 3. As a future, for a thread that may block.
    std::future<reagent::run_result> answer = desk.agent().async_run(reagent::run_request("And tomorrow?"), asio::use_future);

    reagent::testing::byte_server feed(feed_script());
    reagent::websocket_options zeros;
    zeros.random = [] { return std::uint64_t(0); };
    const reagent::url where = reagent::websocket_url("ws://127.0.0.1:" + std::to_string(feed.port()) + "/feed");
    asio::co_spawn(context, follow(reagent::http_client(context.get_executor()), where, zeros), [](std::exception_ptr failure, std::size_t messages) {
        expect(!failure && messages == 2, "websocket: both messages arrive, and the goodbye");
    });

    std::thread host([&] { context.run(); });  // returns by itself: nothing of the library stays behind
    const reagent::run_result result = answer.get();
    host.join();
    expect(result.completed() && result.text() == "We are open.", "future: the answer arrives on another thread");
    return failures == 0 ? 0 : 1;
}
