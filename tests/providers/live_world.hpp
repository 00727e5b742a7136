/// What the tests of the live provider share: a context, a loopback server that plays a script, a client and a gate that records.
#pragma once
#include <reagent/base/error.hpp>
#include <reagent/model/attempt_gate.hpp>
#include <reagent/model/provider_error.hpp>
#include <reagent/providers/openai.hpp>
#include <reagent/testing/byte_server.hpp>
#include <reagent/testing/http_text.hpp>
#include <reagent/testing/manual_clock.hpp>
#include <reagent/testing/run.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reagent::inline v0::live_world_detail {

using testing::byte_script;

/// Everything one call showed.
class observed_call {
public:
    observed_call() = default;
    std::string text;
    std::vector<event_kind> kinds;
    std::size_t batches = 0;
    std::optional<generate_result> result;
    std::exception_ptr failure;
    std::string partial;
    json error() const { return failure ? provider_error_to_json(failure) : json(); }
};

inline awaitable<observed_call> observe(provider_ptr p, generate_request request)
{
    observed_call out;
    const model_call_ptr call = p->start(std::move(request));
    event_batch batch;
    try {
        for (;;) {
            const bool more = co_await call->read(batch);
            ++out.batches;
            for (const event& e : batch) {
                out.text += e.text();
                out.kinds.push_back(e.kind);
            }
            if (!more) break;
        }
        out.result = call->take_result();
    } catch (...) {
        out.failure = std::current_exception();
        out.partial = call->partial_text();
    }
    co_return out;
}

inline generate_request asking(std::string text, bool stream = true)
{
    generate_request r({message::user(std::move(text))});
    r.options.stream = stream;
    return r;
}

class recording_gate final : public attempt_gate {
public:
    class holder final : public permit::state {
    public:
        explicit holder(recording_gate& g) : gate_(g) {}
        void settle(const attempt_outcome& o) noexcept override
        {
            if (gate_.on_settle) gate_.on_settle();
            gate_.outcomes.push_back(o);
        }
        bool observe(const usage& u) noexcept override
        {
            gate_.observed.push_back(u.output);
            return u.output <= gate_.most_output;
        }
        std::string halt_rule() const override { return "budget.maxTokens"; }

    private:
        recording_gate& gate_;
    };
    awaitable<permit> admit(attempt_info attempt) override
    {
        attempts.push_back(attempt);
        if (attempts.size() > most_attempts) throw halt_error("budget.maxTokens");
        co_return permit(std::make_unique<holder>(*this));
    }
    std::vector<attempt_info> attempts;
    std::vector<attempt_outcome> outcomes;
    std::vector<std::uint64_t> observed;
    std::uint64_t most_output = UINT64_MAX;
    std::size_t most_attempts = 1000;
    std::function<void()> on_settle;
};

class live_world {
public:
    explicit live_world(byte_script script) : live_world(std::vector<byte_script>{std::move(script)}) {}
    explicit live_world(std::vector<byte_script> scripts) : server(io.get_executor(), std::move(scripts)), http(io.get_executor(), client_options(clock)) {}
    openai_options options() const
    {
        openai_options o("m");
        o.base_url(url::parse_or_throw(server.origin() + "/v1", "test")).key(secret("k"));
        return o;
    }
    provider_ptr provider() { return openai_chat(http, options()); }
    observed_call call(provider_ptr p, generate_request request)
    {
        io.restart();
        return testing::complete(io, *clock, observe(std::move(p), std::move(request)));
    }
    observed_call call(generate_request request) { return call(provider(), std::move(request)); }
    generate_result generate(provider_ptr p, generate_request request)
    {
        io.restart();
        return testing::complete(io, *clock, p->generate(std::move(request)));
    }
    json error_of(provider_ptr p, generate_request request)
    {
        try {
            static_cast<void>(generate(std::move(p), std::move(request)));
        } catch (...) {
            return provider_error_to_json(std::current_exception());
        }
        return json("no error");
    }
    json body(std::size_t i) const { return json::parse_or_throw(server.log().request(i).body, "request"); }

    std::shared_ptr<testing::manual_clock> clock = std::make_shared<testing::manual_clock>();
    asio::io_context io{1};
    testing::byte_server server;
    http_client http;

private:
    static http_client_options client_options(const std::shared_ptr<testing::manual_clock>& c)
    {
        http_client_options o;
        o.clock = c;
        return o;
    }
};

inline std::string delta_event(std::string_view text)
{
    std::string quoted;
    append_json_string(quoted, text);
    return testing::sse_event(R"({"id":"c","model":"m","choices":[{"index":0,"delta":{"content":)" + quoted + R"(},"finish_reason":null}]})");
}

inline std::string error_body(std::string_view message)
{
    std::string quoted;
    append_json_string(quoted, message);
    return R"({"error":{"message":)" + quoted + "}}";
}

}  // namespace reagent::inline v0::live_world_detail
