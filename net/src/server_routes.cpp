#include "server_routes.hpp"

#include <reagent/base/error.hpp>

#include <algorithm>

namespace reagent::inline v0::net_detail {
namespace {

// The next segment of a path that starts with a slash.
std::string_view take_segment(std::string_view& path)
{
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    return segment;
}

bool is_parameter(std::string_view s) noexcept
{
    return s.starts_with('{');
}

// 0 literal, 1 parameter, 2 the rest: what is nearer to the front decides first.
int weight(const server_routes::entry& e, std::size_t i) noexcept
{
    return i < e.segments.size() ? (is_parameter(e.segments[i]) ? 1 : 0) : e.rest ? 2 : 0;
}

bool more_special(const server_routes::entry& a, const server_routes::entry& b) noexcept
{
    const std::size_t n = std::max(a.segments.size(), b.segments.size()) + 1;
    for (std::size_t i = 0; i < n; ++i)
        if (weight(a, i) != weight(b, i)) return weight(a, i) < weight(b, i);
    return false;
}

bool fits(const server_routes::entry& e, std::string_view path) noexcept
{
    for (const std::string& s : e.segments) {
        if (path.empty()) return false;
        const std::string_view segment = take_segment(path);
        if (is_parameter(s) ? segment.empty() : segment != s) return false;
    }
    return e.rest ? !path.empty() : path.empty();
}

// Two patterns that differ in the names of parameters only.
bool same_shape(const server_routes::entry& a, const server_routes::entry& b) noexcept
{
    return a.rest == b.rest &&
        std::equal(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
                   [](const std::string& x, const std::string& y) { return x == y || (is_parameter(x) && is_parameter(y)); });
}

}  // namespace

void server_routes::add(std::string method, std::string pattern, http_server::handler f)
{
    const auto fail = [&pattern](const char* what) { throw config_error("[http_server] the route " + pattern.substr(0, 100) + ' ' + what); };
    if (method.empty()) fail("has no method");
    if (!f) fail("has no handler");
    if (!pattern.starts_with('/')) fail("must start with /");
    entry e;
    std::string_view path(pattern);
    while (!path.empty()) {
        const std::string_view segment = take_segment(path);
        if (segment == "*") {
            if (!path.empty()) fail("goes on behind *");
            e.rest = true;
            break;
        }
        if (is_parameter(segment) && (!segment.ends_with('}') || segment.size() < 3)) fail("has a parameter without a name or its closing brace");
        e.segments.emplace_back(segment);
    }
    e.method = std::move(method);
    e.handler = std::move(f);
    for (const auto& other : entries_)
        if (other->method == e.method && same_shape(*other, e)) fail("is taken already");
    e.pattern = std::move(pattern);
    entries_.push_back(std::make_unique<entry>(std::move(e)));
    std::stable_sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) { return more_special(*a, *b); });
}

server_routes::verdict server_routes::match(std::string_view method, std::string_view path, std::vector<std::pair<std::string, std::string>>* parameters) const
{
    verdict v;
    if (!path.starts_with('/')) return v;  // the `*` of OPTIONS is no path
    const entry* get = nullptr;
    for (const auto& each : entries_) {
        const entry& e = *each;
        if (!fits(e, path)) continue;
        if (e.method == method) {
            v.found = &e;
            break;
        }
        if (e.method == "GET" && get == nullptr) get = &e;
        if (v.allow.find(e.method) == std::string::npos) v.allow += (v.allow.empty() ? "" : ", ") + e.method + (e.method == "GET" ? ", HEAD" : "");
    }
    if (v.found == nullptr && method == "HEAD") v.found = get;
    if (v.found == nullptr) return v;
    v.allow.clear();
    if (parameters != nullptr) {
        for (const std::string& s : v.found->segments) {
            const std::string_view segment = take_segment(path);
            if (is_parameter(s)) parameters->emplace_back(s.substr(1, s.size() - 2), segment);
        }
        if (v.found->rest) parameters->emplace_back("*", path.substr(1));
    }
    return v;
}

}  // namespace reagent::inline v0::net_detail
