#include <reagent/base/time_text.hpp>
#include <reagent/model/http_failure.hpp>

#include <gtest/gtest.h>

#include <map>

namespace {
namespace http_failure_test {

using namespace reagent;
using std::chrono::milliseconds;

using header_map = std::map<std::string, std::string, std::less<>>;

std::string_view get(const void* fields, std::string_view name)
{
    const auto& map = *static_cast<const header_map*>(fields);
    const auto at = map.find(name);
    return at == map.end() ? std::string_view() : std::string_view(at->second);
}

const system_time now = *parse_rfc3339("2026-11-30T09:00:00Z");

std::optional<milliseconds> wait(const header_map& headers, std::string_view body = "{}")
{
    return retry_after_from(header_lookup(&headers, &get), json::parse_or_throw(body, "test"), now);
}

http_failure failure(int status, std::string_view body, const header_map& headers = {}, bool expose = false)
{
    return http_failure("X", status, header_lookup(&headers, &get), body, now, expose);
}

TEST(RetryAfter, TakesTheFirstThatSpeaks)
{
    EXPECT_EQ(wait({{"retry-after-ms", "150"}, {"retry-after", "9"}}), milliseconds(150));
    EXPECT_EQ(wait({{"retry-after", "1.5"}}), milliseconds(1500));
    EXPECT_EQ(wait({{"retry-after", "-5"}}), milliseconds(0));
    EXPECT_FALSE(wait({{"retry-after", "soon"}}).has_value());
    EXPECT_FALSE(wait({}).has_value());
    EXPECT_EQ(wait({{"date", "Mon, 30 Nov 2026 08:59:00 GMT"}, {"retry-after", "Mon, 30 Nov 2026 08:59:03 GMT"}}), milliseconds(3000));
    EXPECT_EQ(wait({{"retry-after", "Mon, 30 Nov 2026 09:00:07 GMT"}}), milliseconds(7000));
    EXPECT_EQ(wait({{"retry-after", "Mon, 30 Nov 2026 08:00:00 GMT"}}), milliseconds(0));
    EXPECT_EQ(wait({}, R"({"error":{"details":[{"x":1},{"retryDelay":"0.5s"}]}})"), milliseconds(500));
    EXPECT_EQ(wait({{"x-ratelimit-remaining-tokens", "0"}, {"x-ratelimit-reset-tokens", "1m2s"}}), milliseconds(62'000));
    EXPECT_FALSE((wait({{"x-ratelimit-remaining-tokens", "1"}, {"x-ratelimit-reset-tokens", "1m2s"}})).has_value());
}

TEST(RateLimit, ReadsBothVendors)
{
    const header_map openai = {{"x-ratelimit-limit-requests", "500"}, {"x-ratelimit-remaining-requests", "499"}, {"x-ratelimit-reset-requests", "1m2s"}};
    const auto a = rate_limit_from(header_lookup(&openai, &get), now);
    ASSERT_TRUE(a.has_value());
    EXPECT_EQ(a->requests.limit, 500U);
    EXPECT_EQ(a->requests.remaining, 499U);
    EXPECT_EQ(a->requests.reset, now + std::chrono::seconds(62));
    const header_map anthropic = {{"anthropic-ratelimit-tokens-reset", "2026-11-30T10:00:00+01:00"}, {"anthropic-ratelimit-input-tokens-remaining", "7"}};
    const auto b = rate_limit_from(header_lookup(&anthropic, &get), now);
    ASSERT_TRUE(b.has_value());
    EXPECT_EQ(b->tokens.reset, now);
    EXPECT_EQ(b->input_tokens.remaining, 7U);
    EXPECT_FALSE(rate_limit_from(header_lookup(), now).has_value());
}

TEST(HttpFailure, ClassifiesByStatus)
{
    for (const int status : {408, 425, 429, 500, 502, 503, 504, 520, 524, 529}) EXPECT_TRUE(failure(status, "{}").error.retryable()) << status;
    for (const int status : {400, 401, 403, 404, 409, 422, 501 + 8, 505}) EXPECT_FALSE(failure(status, "{}").error.retryable()) << status;
    EXPECT_EQ(failure(503, "<html>").error.message(), "[X] HTTP 503");
    EXPECT_EQ(failure(401, R"({"error":{"message":"bad key"}})").error.message(), "[X] bad key");
    EXPECT_EQ(failure(401, R"({"error":"bad key"})").error.message(), "[X] bad key");
    EXPECT_EQ(failure(429, "{}").error.code(), errc::rate_limited);
}

TEST(HttpFailure, QuotaIsFinalAndTheServerMayOverrule)
{
    EXPECT_FALSE(failure(429, R"({"error":{"code":"insufficient_quota"}})").error.retryable());
    EXPECT_FALSE(failure(429, R"({"error":{"type":"billing_error"}})").error.retryable());
    EXPECT_FALSE(failure(500, "{}", {{"x-should-retry", "false"}}).error.retryable());
    EXPECT_TRUE(failure(400, "{}", {{"x-should-retry", "true"}}).error.retryable());
}

TEST(HttpFailure, BoundsForeignTextAndHidesTheBody)
{
    const std::string body = R"({"error":{"message":")" + std::string(5000, 'm') + R"(\u0007"}})";
    EXPECT_LT(failure(400, body).error.message().size(), 400U);
    EXPECT_EQ(failure(400, body).service_message.size(), 5001U);
    EXPECT_FALSE(failure(400, body).error.body.has_value());
    EXPECT_EQ(failure(400, body, {}, true).error.body, body);
}

TEST(ServiceError, FindsTheStatusAnErrorStandsFor)
{
    const auto status = [](const char* text) { return service_error::read(json::parse_or_throw(text, "test")).status; };
    EXPECT_EQ(status(R"({"code":502})"), 502);
    EXPECT_EQ(status(R"({"code":1002,"status":503})"), 503);
    EXPECT_EQ(status(R"({"type":"overloaded_error"})"), 529);
    EXPECT_EQ(status(R"({"code":"rate_limit_exceeded"})"), 429);
    EXPECT_EQ(status(R"({"type":"server_error"})"), 500);
    EXPECT_EQ(status(R"({"type":"invalid_request_error","code":"billing_hard_limit_reached"})"), 429);
    EXPECT_EQ(status(R"({"type":"odd"})"), 0);
}

TEST(RetryAfter, TimesBeyondTheCalendarNeitherOverflowNorCount)
{
    constexpr milliseconds longest(1'000'000'000'000);
    EXPECT_FALSE(wait({{"retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"}}).has_value());
    EXPECT_EQ(wait({{"date", "Sat, 01 Jan 1678 00:00:00 GMT"}, {"retry-after", "Tue, 31 Dec 2261 23:59:59 GMT"}}), longest);
    EXPECT_EQ(wait({{"date", "Tue, 31 Dec 2261 23:59:59 GMT"}, {"retry-after", "Sat, 01 Jan 1678 00:00:00 GMT"}}), milliseconds(0));
    EXPECT_EQ(wait({{"x-ratelimit-remaining-tokens", "0"}, {"x-ratelimit-reset-tokens", "2500000h"}}), longest);
    EXPECT_EQ(wait({{"x-ratelimit-remaining-tokens", "0"}, {"x-ratelimit-reset-tokens", "1678-01-01T00:00:00Z"}}), milliseconds(0));
    EXPECT_EQ(wait({}, R"({"error":{"details":[{"retryDelay":"99999999999999h"}]}})"), longest);
    EXPECT_EQ(wait({}, R"({"error":{"details":[{"retryDelay":"-3s"}]}})"), milliseconds(0));
}

TEST(RateLimit, RelativeResetsSaturateAndMayBeBareSeconds)
{
    const auto reset = [](const char* text) {
        const header_map headers = {{"x-ratelimit-reset-requests", text}};
        const auto info = rate_limit_from(header_lookup(&headers, &get), now);
        return info ? info->requests.reset : std::nullopt;
    };
    EXPECT_EQ(reset("2500000h"), system_time::max());
    EXPECT_EQ(reset("-2500000h"), now - std::chrono::hours(2500000));
    EXPECT_EQ(reset("99999999999999h"), system_time::max());
    EXPECT_EQ(reset("34"), now + std::chrono::seconds(34));
    EXPECT_EQ(reset("0.5"), now + milliseconds(500));
    EXPECT_EQ(reset("6m0s"), now + std::chrono::seconds(360));
    EXPECT_FALSE(reset("9999-12-31T23:59:59Z").has_value());
    EXPECT_FALSE(reset("soon").has_value());
}

TEST(HttpFailure, AKeyAtTheCutIsHiddenWhole)
{
    const std::string key = "sk-0123456789abcdef0123456789abcdef";
    for (std::size_t before = 260; before <= 300; ++before) {
        const http_failure f("X", 401, header_lookup(), R"({"error":{"message":")" + std::string(before, 'm') + key + R"( end"}})", now, false, key);
        EXPECT_EQ(f.error.message().find("sk-"), std::string::npos) << before;
    }
}

TEST(HttpFailure, KeepsRequestIdAndLimits)
{
    const http_failure f = failure(429, "{}", {{"x-request-id", "req_7"}, {"x-ratelimit-remaining-requests", "0"}});
    EXPECT_EQ(f.error.request_id, "req_7");
    EXPECT_EQ(f.error.rate_limit.value().requests.remaining, 0U);
    EXPECT_EQ(failure(500, "{}", {{"request-id", "req_8"}}).error.request_id, "req_8");
    EXPECT_FALSE(failure(500, "{}").error.rate_limit.has_value());
    const json j = provider_error_to_json(std::make_exception_ptr(f.error));
    EXPECT_EQ(j["requestId"].as_string(), "req_7");
    EXPECT_EQ(j["rateLimit"]["requests"]["remaining"].get_uint64(), 0U);
}

}  // namespace http_failure_test
}  // namespace
