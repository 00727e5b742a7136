#include <reagent/base/time_text.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/base/utf8.hpp>
#include <reagent/model/http_failure.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace reagent::inline v0 {

namespace {

using std::chrono::milliseconds;

bool is_quota(std::string_view name) noexcept
{
    constexpr std::array<std::string_view, 4> names = {"insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "billing_error"};
    return std::find(names.begin(), names.end(), name) != names.end();
}

int status_of_type(std::string_view name) noexcept
{
    if (name == "rate_limit_exceeded" || name == "rate_limit_error" || is_quota(name)) return 429;
    if (name == "server_error" || name == "api_error" || name == "internal_error") return 500;
    if (name == "invalid_request_error") return 400;
    if (name == "authentication_error") return 401;
    if (name == "overloaded_error") return 529;
    return 0;
}

std::string_view text_or_empty(const json& j) noexcept
{
    const std::string* s = j.get_string();
    return s == nullptr ? std::string_view() : std::string_view(*s);
}

std::optional<double> number(std::string_view text) noexcept
{
    double out = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out, std::chars_format::fixed);
    if (ec != std::errc() || end != text.data() + text.size() || !std::isfinite(out)) return std::nullopt;
    return out;
}

milliseconds at_least_zero(double ms) noexcept
{
    constexpr double longest = 1e12;  // beyond thirty years nobody waits
    return milliseconds(static_cast<std::int64_t>(std::llround(std::clamp(ms, 0.0, longest))));
}

std::optional<std::uint64_t> count(std::string_view text) noexcept
{
    std::uint64_t out = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return out;
}

/// A span as services write it: Go's form, or bare seconds.
std::optional<std::chrono::nanoseconds> span_of(std::string_view text)
{
    if (const auto seconds = number(text)) return parse_go_duration(std::string(text) + "s");
    return parse_go_duration(text);
}

/// `a + b` that stays inside what a time can hold: a peer chooses `b`.
system_time later(system_time a, std::chrono::nanoseconds b) noexcept
{
    if (b.count() > 0 && a > system_time::max() - b) return system_time::max();
    if (b.count() < 0 && a < system_time::min() - b) return system_time::min();
    return a + b;
}

/// From `from` to `to`, floored at zero. In floating point, where the ends of time are not too far apart.
milliseconds wait_between(system_time from, system_time to) noexcept
{
    using span = std::chrono::duration<double, std::milli>;
    return at_least_zero((span(to.time_since_epoch()) - span(from.time_since_epoch())).count());
}

/// One window; true when any of its headers was there.
bool read_window(rate_limit_window& w, const header_lookup& headers, std::string_view limit, std::string_view remaining, std::string_view reset,
                 system_time now)
{
    rate_limit_window read;
    read.limit = count(headers(limit));
    read.remaining = count(headers(remaining));
    const std::string_view at = headers(reset);
    if (!at.empty()) {
        if (const auto absolute = parse_rfc3339(at)) read.reset = absolute;
        else if (const auto span = span_of(at)) read.reset = later(now, *span);
    }
    if (!read.limit && !read.remaining && !read.reset) return false;
    w = read;
    return true;
}

std::optional<milliseconds> retry_info(const json& body)
{
    const json& details = body["error"]["details"];
    if (!details.is_array()) return std::nullopt;
    for (const json& d : details.as_array()) {
        const std::string_view delay = text_or_empty(d["retryDelay"]);
        if (delay.empty()) continue;
        if (const auto span = span_of(delay)) return at_least_zero(std::chrono::duration<double, std::milli>(*span).count());
    }
    return std::nullopt;
}

}  // namespace

std::string prefixed(std::string_view component, std::string_view text)
{
    std::string out;
    out.reserve(component.size() + text.size() + 3);
    out += '[';
    out += component;
    out += "] ";
    out += text;
    return out;
}

service_error service_error::read(const json& error)
{
    service_error out;
    if (const std::string* text = error.get_string()) {
        out.message = *text;
        return out;
    }
    out.message = text_or_empty(error["message"]);
    const std::string_view code = text_or_empty(error["code"]), type = text_or_empty(error["type"]);
    out.quota = is_quota(code) || is_quota(type);
    for (const char* key : {"code", "status"}) {
        const auto n = error[key].get_int64();
        if (n && *n >= 100 && *n <= 599) {
            out.status = static_cast<int>(*n);
            return out;
        }
    }
    out.status = status_of_type(type);
    if (out.status == 0) out.status = status_of_type(code);
    if (out.quota) out.status = 429;
    return out;
}

bool retryable_status(int status) noexcept
{
    return status == 408 || status == 425 || status == 429 || (status >= 500 && status <= 504) || (status >= 520 && status <= 524) || status == 529;
}

std::optional<rate_limit_info> rate_limit_from(const header_lookup& headers, system_time now)
{
    rate_limit_info out;
    bool any = read_window(out.requests, headers, "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests", now);
    any |= read_window(out.tokens, headers, "x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens", now);
    any |= read_window(out.requests, headers, "anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining",
                       "anthropic-ratelimit-requests-reset", now);
    any |=
        read_window(out.tokens, headers, "anthropic-ratelimit-tokens-limit", "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset", now);
    any |= read_window(out.input_tokens, headers, "anthropic-ratelimit-input-tokens-limit", "anthropic-ratelimit-input-tokens-remaining",
                       "anthropic-ratelimit-input-tokens-reset", now);
    any |= read_window(out.output_tokens, headers, "anthropic-ratelimit-output-tokens-limit", "anthropic-ratelimit-output-tokens-remaining",
                       "anthropic-ratelimit-output-tokens-reset", now);
    if (!any) return std::nullopt;
    return out;
}

std::optional<milliseconds> retry_after_from(const header_lookup& headers, const json& body, system_time now)
{
    if (const auto ms = number(headers("retry-after-ms"))) return at_least_zero(*ms);
    const std::string_view after = headers("retry-after");
    if (const auto s = number(after)) return at_least_zero(*s * 1e3);
    if (const auto at = parse_http_date(after, now)) return wait_between(parse_http_date(headers("date"), now).value_or(now), *at);
    if (const auto delay = retry_info(body)) return delay;
    const auto limits = rate_limit_from(headers, now);
    if (!limits) return std::nullopt;
    std::optional<milliseconds> longest;
    for (const rate_limit_window* w : {&limits->requests, &limits->tokens, &limits->input_tokens, &limits->output_tokens}) {
        if (w->remaining != std::uint64_t{0} || !w->reset) continue;
        const milliseconds wait = wait_between(now, *w->reset);
        longest = std::max(longest.value_or(wait), wait);
    }
    return longest;
}

namespace {

provider_error make_http_error(std::string_view component, int status, const header_lookup& headers, const service_error& said, std::string_view hidden)
{
    bool retryable = retryable_status(status) && !(status == 429 && said.quota);
    const std::string_view advice = headers("x-should-retry");
    if (advice == "true") retryable = true;
    if (advice == "false") retryable = false;
    const std::string text = untrusted_text(hide_secret(said.message, hidden));
    provider_error out(status == 429 ? errc::rate_limited : errc::provider_failed, prefixed(component, text.empty() ? "HTTP " + std::to_string(status) : text),
                       retryable);
    out.status = status;
    return out;
}

json parsed_or_null(std::string_view body)
{
    auto parsed = json::parse(body);
    return parsed ? std::move(*parsed) : json();
}

}  // namespace

http_failure::http_failure(std::string_view component, int status, const header_lookup& headers, std::string_view body, system_time now, bool expose_body,
                           std::string_view hidden)
    : error(errc::provider_failed, {}, false)
{
    const json answer = status >= 400 ? parsed_or_null(body) : json();
    service_error said = service_error::read(answer["error"]);
    error = make_http_error(component, status, headers, said, hidden);
    error.retry_after = retry_after_from(headers, answer, now);
    error.rate_limit = rate_limit_from(headers, now);
    error.request_id = headers("x-request-id");
    if (error.request_id.empty()) error.request_id = headers("request-id");
    if (expose_body) error.body = repair_utf8(body);
    service_message = std::move(said.message);
}

}  // namespace reagent::inline v0
