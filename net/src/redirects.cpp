#include <reagent/net/redirects.hpp>

#include <reagent/base/untrusted_text.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace reagent::inline v0 {
namespace {

bool same_name(std::string_view a, std::string_view lower) noexcept
{
    return a.size() == lower.size() && std::equal(a.begin(), a.end(), lower.begin(), [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x + ('a' - 'A') : x) == y; });
}

bool names_content(std::string_view name) noexcept
{
    constexpr std::string_view prefix = "content-";
    return name.size() > prefix.size() && same_name(name.substr(0, prefix.size()), prefix);
}

bool harmless(std::string_view name) noexcept
{
    constexpr std::array<std::string_view, 5> list = {"accept", "accept-language", "user-agent", "content-type", "content-encoding"};
    return std::any_of(list.begin(), list.end(), [&](std::string_view l) { return same_name(name, l); });
}

}  // namespace

redirect_trail::redirect_trail(http_request first, redirect_policy policy)
    : request_(std::move(first)), policy_(std::move(policy)), lines_(request_.header_lines)
{
    request_.header_lines = lines_;
}

void redirect_trail::refuse(const std::string& why) const
{
    throw transport_error(errc::redirect_refused, "[http] " + request_.method + " " + request_.target.redacted() + ": redirect refused: " + why, false);
}

// Drops the lines that may not go along.
void redirect_trail::keep_lines(bool origin_changed)
{
    std::string kept;
    for (std::string_view rest = lines_; !rest.empty();) {
        const std::size_t end = std::min(rest.find("\r\n"), rest.size() - 2) + 2;
        const std::string_view line = rest.substr(0, end), name = line.substr(0, line.find(':'));
        rest.remove_prefix(end);
        const bool of_body = names_content(name);
        if (of_body && request_.body.empty()) continue;
        if (!origin_changed || harmless(name)) kept.append(line);
    }
    lines_ = std::move(kept);
    request_.header_lines = lines_;
}

bool redirect_trail::follow(const http_head& head)
{
    const unsigned s = head.status;
    if (s != 301 && s != 302 && s != 303 && s != 307 && s != 308) return false;
    const std::string_view location = head.fields.get("location");
    if (location.empty()) return false;
    if (followed_ == policy_.max) refuse("there were " + std::to_string(policy_.max) + " already");
    const auto next = request_.target.resolve(location);
    if (!next) refuse("Location is no http or https URL: " + untrusted_text(location, 200));
    const url& here = request_.target;
    const bool origin_changed = next->scheme() != here.scheme() || next->host() != here.host() || next->port() != here.port();
    if (here.tls() && !next->tls()) refuse("it leads from https to http, to " + next->redacted());
    if (origin_changed && policy_.same_origin) refuse("it leads to another origin, " + next->origin());
    if (policy_.check) policy_.check(*next);
    const bool becomes_get = s == 303 ? request_.method != "HEAD" && request_.method != "GET" : (s == 301 || s == 302) && request_.method == "POST";
    if (becomes_get) request_.method = "GET";
    if (becomes_get || s == 303) request_.body = {};
    keep_lines(origin_changed);
    request_.target = *next;
    ++followed_;
    return true;
}

awaitable<http_exchange> open_following(http_client client, http_request request, redirect_policy policy)
{
    redirect_trail trail(std::move(request), std::move(policy));
    for (;;) {
        http_request next = trail.request();
        http_exchange answer = co_await client.open(std::move(next));
        if (!trail.follow(answer.head())) co_return answer;
        answer.finish();
    }
}

}  // namespace reagent::inline v0
