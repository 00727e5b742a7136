#include "tool_call_assembler.hpp"

#include <reagent/base/untrusted_text.hpp>
#include <reagent/base/utf8.hpp>
#include <reagent/model/answer_builder.hpp>

namespace reagent::inline v0 {

answer_builder::answer_builder(const wire_codec& codec, tool_list tools, std::string request_id) : codec_(&codec), tools_(std::move(tools))
{
    result_.request_id = std::move(request_id);
}

answer_builder::~answer_builder() = default;

model_detail::tool_call_assembler& answer_builder::calls()
{
    if (!calls_) calls_ = std::make_unique<model_detail::tool_call_assembler>(codec_->options().max_arguments, codec_->options().random);
    return *calls_;
}

void answer_builder::start(event_batch* out)
{
    begun_ = true;
    if (out == nullptr) return;
    const std::string_view id = out->keep(result_.request_id), model = out->keep(result_.model.empty() ? codec_->model() : result_.model);
    event& e = out->push(event_kind::start);
    e.id = id;
    e.name = model;
}

void answer_builder::add_thinking(std::string_view delta, event_batch* out)
{
    if (delta.empty()) return;
    thinking_ += delta;
    if (out != nullptr) out->push(event_kind::thinking, delta);
}

void answer_builder::show_thinking(std::string_view delta, event_batch* out)
{
    if (delta.empty()) return;
    shown_ += delta.size();
    if (out != nullptr) out->push(event_kind::thinking, delta);
}

void answer_builder::add_usage(const usage& u, event_batch* out)
{
    result_.usage = u;
    if (out == nullptr) return;
    const json* data = out->keep(u.to_json());
    out->push(event_kind::usage).data = data;
}

bool answer_builder::add_call(const model_detail::tool_fragment& f, bool whole, event_batch* out)
{
    return whole ? calls().add_whole(f, out) : calls().add(f, out);
}

bool answer_builder::add_unreadable_call()
{
    return calls().add_unreadable();
}

bool answer_builder::holds_call(std::size_t position, const model_detail::tool_fragment& f) const noexcept
{
    return calls_ && calls_->holds(position, f);
}

void answer_builder::drop_calls() noexcept
{
    calls_.reset();
}

void answer_builder::cut_call(std::int64_t index)
{
    calls().cut(index);
}

void answer_builder::set_blocks(std::string model, json blocks, json layout)
{
    result_.blocks.emplace(std::string(codec_->provider_name()), std::move(model), std::move(blocks));
    result_.blocks->layout = std::move(layout);
}

decode_state answer_builder::finish(std::string_view stop, event_batch* out)
{
    begin(out);
    const bool refused = result_.text.empty() && !refusal_.empty();
    if (calls_ && !result_.malformed) calls_->finish(tools_, codec_->options().expose_malformed_args, result_, out);
    result_.stop_reason = refused ? std::string_view("refusal") : stop;
    if (refused) add_text(refusal_, out);
    if (result_.stop_reason == "end_turn" && !result_.tool_calls.empty()) result_.stop_reason = "tool_use";
    if (result_.model.empty()) result_.model = codec_->model();
    if (out != nullptr) out->push(event_kind::stop, result_.stop_reason);
    return decode_state::done;
}

provider_error answer_builder::make_error(errc code, std::string_view text, std::string_view bound, bool retryable) const
{
    provider_error e(code, prefixed(codec_->component(), text), retryable);
    e.bound = bound;
    return e;
}

std::string answer_builder::quoted(std::string_view foreign, std::size_t max) const
{
    constexpr std::size_t looked_at = 64 * 1024;  // more than is ever shown
    return untrusted_text(hide_secret(foreign.substr(0, looked_at), codec_->key()), max);
}

decode_state answer_builder::fail(provider_error failure, bool with_partial)
{
    if (with_partial) {
        partial_output partial;
        partial.text = result_.text;
        partial.tool_calls_started = calls_started();
        failure.partial = std::move(partial);
    }
    if (failure.request_id.empty()) failure.request_id = result_.request_id;
    failure_ = std::make_unique<provider_error>(std::move(failure));
    return decode_state::failed;
}

decode_state answer_builder::fail_truncated(bool clean)
{
    provider_error e = make_error(errc::stream_truncated, "response stream aborted before the body completed", "transport", true);
    e.event = clean ? "premature-end" : "aborted";
    return fail(std::move(e), true);
}

decode_state answer_builder::fail_limit(bool with_partial)
{
    return fail(make_error(errc::event_too_large, calls().limit_text(), "event-too-large", false), with_partial);
}

decode_state answer_builder::fail_invalid_event(std::string_view data)
{
    return fail(make_error(errc::invalid_json, "stream event is not JSON: " + quoted(data, 200), "invalid-event", true), true);
}

decode_state answer_builder::fail_invalid_body(std::string_view text, int status)
{
    const bool empty = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
    provider_error e = make_error(errc::invalid_json, "Invalid JSON response: " + quoted(text, 200), "invalid-json", empty);
    e.status = status;
    if (codec_->options().expose_error_body) e.body = repair_utf8(text);
    return fail(std::move(e), false);
}

decode_state answer_builder::fail_said(const service_error& said, const json& body, std::string_view bound, bool with_partial)
{
    std::string text = quoted(said.message, 300);
    if (text.empty()) text = with_partial ? "the stream carries an error without a message" : "the answer is an error without a message";
    provider_error e = make_error(said.status == 429 ? errc::rate_limited : errc::provider_failed, text, bound, retryable_status(said.status) && !said.quota);
    e.status = said.status;
    if (codec_->options().expose_error_body) e.body = body.dump();
    return fail(std::move(e), with_partial);
}

unsigned answer_builder::calls_started() const noexcept
{
    return calls_ ? calls_->started() : 0;
}

std::uint64_t answer_builder::received_bytes() const noexcept
{
    return result_.text.size() + thinking_.size() + refusal_.size() + shown_ + (calls_ ? calls_->argument_bytes() : 0);
}

std::uint64_t answer_builder::held_bytes() const noexcept
{
    return result_.text.size() + thinking_.size() + refusal_.size() + shown_ + held_ + (calls_ ? calls_->held_bytes() : 0);
}

}  // namespace reagent::inline v0
