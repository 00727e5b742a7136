#include <reagent/base/error.hpp>
#include <reagent/base/spawn.hpp>
#include <reagent/model/provider.hpp>
#include <reagent/model/result_events.hpp>

namespace reagent::inline v0 {

namespace {

/// A call made from `generate`: everything at once, at the end.
class generate_call final : public model_call {
public:
    generate_call(std::shared_ptr<provider> p, generate_request r) : provider_(std::move(p)), request_(std::move(r)) {}
    awaitable<bool> read(event_batch& batch) override
    {
        batch.clear();
        if (done_) co_return false;
        generate_result r = co_await provider_->generate(std::move(request_));
        result_ = std::move(r);
        done_ = true;
        append_result_events(batch, result_);
        co_return false;
    }
    generate_result take_result() override { return std::move(result_); }

private:
    std::shared_ptr<provider> provider_;
    generate_request request_;
    generate_result result_;
    bool done_ = false;
};

}  // namespace

void append_result_events(event_batch& batch, const generate_result& r, bool opened)
{
    if (!opened) {
        const std::string_view request_id = batch.keep(r.request_id), model = batch.keep(r.model);
        event& start = batch.push(event_kind::start);
        start.id = request_id;
        start.name = model;
    }
    if (!r.text.empty()) batch.push(event_kind::text, r.text);
    std::uint32_t index = 0;
    for (const tool_call& c : r.tool_calls) {
        const std::string_view id = batch.keep(c.id), name = batch.keep(c.name);
        const auto push = [&](event_kind kind, std::string_view payload) -> event& {
            event& e = batch.push(kind, payload);
            e.index = index;
            e.id = id;
            e.name = name;
            return e;
        };
        push(event_kind::tool_start, {});
        push(event_kind::tool_args, c.arguments.dump());
        push(event_kind::tool_end, {}).data = batch.keep(c.arguments);
        ++index;
    }
    if (r.usage) {
        const json* data = batch.keep(r.usage->to_json());
        batch.push(event_kind::usage).data = data;
    }
    batch.push(event_kind::stop, r.stop_reason);
}

model_call_ptr provider::start(generate_request request)
{
    return std::make_unique<generate_call>(shared_from_this(), std::move(request));
}

awaitable<generate_result> provider::generate(generate_request request)
{
    const model_call_ptr call = start(std::move(request));
    if (dynamic_cast<generate_call*>(call.get()) != nullptr) {
        const std::string who(name());
        throw validation_error("[" + who + "] a provider must override start or generate");
    }
    event_batch batch;
    for (;;) {
        const bool more = co_await call->read(batch);
        if (!more) break;
    }
    co_return call->take_result();
}

namespace {

// Keeps the provider alive while it works.
awaitable<generate_result> generate_to_end(std::shared_ptr<provider> self, generate_request request)
{
    generate_result r = co_await self->generate(std::move(request));
    co_return r;
}

}  // namespace

void provider::start_generate(std::shared_ptr<provider> self, any_io_executor where, generate_request request,
                              asio::any_completion_handler<void(error_code, generate_result)> handler)
{
    start_for_handler(std::move(where), generate_to_end(std::move(self), std::move(request)), std::move(handler));
}

}  // namespace reagent::inline v0
