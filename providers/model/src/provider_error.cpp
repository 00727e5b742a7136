#include <reagent/model/provider_error.hpp>

#include <cstring>

namespace reagent::inline v0 {

namespace {

/// The name that the system's error has everywhere (`ECONNREFUSED`), or null.
const char* system_name(const provider_error& e) noexcept
{
    if (e.code() == errc::resolve_failed) return "ENOTFOUND";
    if (!e.cause || e.cause.category() != boost::system::system_category()) return nullptr;
    return strerrorname_np(e.cause.value());
}

json provider_to_json(const provider_error& e)
{
    json out = json::object().set("kind", "provider");
    if (e.status != 0) out.set("status", e.status);
    out.set("retryable", e.retryable());
    if (!e.bound.empty()) out.set("bound", e.bound);
    if (!e.event.empty()) out.set("event", e.event);
    if (const char* name = system_name(e)) out.set("code", name);
    out.set("message", e.message());
    if (e.body) out.set("body", *e.body);
    if (e.retry_after) out.set("retryAfterMs", static_cast<std::int64_t>(e.retry_after->count()));
    if (e.partial) out.set("partial", json::object().set("text", e.partial->text).set("toolCallsStarted", e.partial->tool_calls_started));
    if (!e.request_id.empty()) out.set("requestId", e.request_id);
    if (e.rate_limit) out.set("rateLimit", e.rate_limit->to_json());
    if (e.attempts != 1) out.set("attempts", e.attempts);
    if (!e.records.empty()) out.set("attemptRecords", to_json(e.records));
    return out;
}

json kind_and_message(std::string_view kind, const error& e)
{
    return json::object().set("kind", kind).set("retryable", e.retryable()).set("message", e.message());
}

}  // namespace

json provider_error_to_json(const std::exception_ptr& failure)
{
    try {
        std::rethrow_exception(failure);
    } catch (const provider_error& e) {
        return provider_to_json(e);
    } catch (const timeout_error& e) {
        return kind_and_message("timeout", e).set("bound", e.bound());
    } catch (const validation_error& e) {
        return kind_and_message("validation", e);
    } catch (const halt_error& e) {
        return kind_and_message("halt", e).set("rule", e.rule());
    } catch (const error& e) {
        return kind_and_message(is_cancellation(failure) ? "cancelled" : "error", e);
    } catch (...) {
        return json::object().set("kind", is_cancellation(failure) ? "cancelled" : "error").set("retryable", false).set("message", message_of(failure));
    }
}

}  // namespace reagent::inline v0
