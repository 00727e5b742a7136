#include "run_driver.hpp"

namespace reagent::inline v0::agent_detail {

void run_driver::emit(event_kind kind, std::string_view payload, json data)
{
    if (!state_.wants_events()) return;
    event_batch& out = state_.out();
    event& e = out.push(kind, payload);
    e.round = machine_.round();
    e.at = clock_->wall();
    if (!data.is_null()) e.data = out.keep(std::move(data));
}

void run_driver::emit_tool(event_kind kind, const tool_call& call, json data)
{
    if (!state_.wants_events()) return;
    event_batch& out = state_.out();
    event& e = out.push(kind);
    e.round = machine_.round();
    e.at = clock_->wall();
    e.id = out.keep(call.id);
    e.name = out.keep(call.name);
    if (!data.is_null()) e.data = out.keep(std::move(data));
}

json run_driver::round_extra() const
{
    return json::object().set("round", machine_.round());
}

void run_driver::report(std::string source, std::string message, json extra, std::exception_ptr cause)
{
    json data = json::object().set("source", source);
    for (const auto& [key, value] : extra.as_object()) data.set(key, value);
    emit(event_kind::error, message, std::move(data));
    if (!hooks_.on_error) return;
    error_report r;
    r.source = std::move(source);
    r.message = std::move(message);
    r.extra = std::move(extra);
    r.cause = std::move(cause);
    r.run_id = state_.run_id;
    try {
        hooks_.on_error(r);
    } catch (...) {
        options_.log(log_level::warn, "[Loop] on_error threw: " + message_of(std::current_exception()));
    }
}

void run_driver::report(std::string source, const std::exception_ptr& failure, json extra)
{
    report(std::move(source), message_of(failure), std::move(extra), failure);
}

bool told_to_end(const asio::cancellation_state& now) noexcept
{
    return now.cancelled() != asio::cancellation_type::none;
}

void run_driver::absorb(const std::exception_ptr& failure, std::string source, json extra, const asio::cancellation_state& now)
{
    try {
        std::rethrow_exception(failure);
    } catch (const halt_error&) {
        throw;
    } catch (...) {
        if (is_cancellation(failure) && (told_to_end(now) || state_.cancelled())) throw;
    }
    report(std::move(source), failure, std::move(extra));
}

}  // namespace reagent::inline v0::agent_detail
