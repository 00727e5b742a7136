#include "url_host.hpp"

#include <reagent/base/address.hpp>
#include <reagent/base/ascii.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/base/url.hpp>

#include <algorithm>
#include <vector>

namespace reagent::inline v0 {
namespace {

bool slash(char c) noexcept
{
    return c == '/' || c == '\\';
}

// The percent-encode sets of the standard, beyond controls and what is above ASCII.
constexpr std::string_view path_set = " \"#<>?^`{}";
constexpr std::string_view query_set = " \"#<>'";
constexpr std::string_view userinfo_set = " \"#<>?^`{}/:;=@[\\]|";

void append_encoded(std::string& out, std::string_view text, std::string_view set)
{
    constexpr const char* hex = "0123456789ABCDEF";
    for (const char c : text) {
        const auto u = static_cast<unsigned char>(c);
        if (u > 0x1F && u < 0x7F && set.find(c) == std::string_view::npos) out.push_back(c);
        else {
            out.push_back('%');
            out.push_back(hex[u >> 4]);
            out.push_back(hex[u & 15]);
        }
    }
}

// Leading and trailing controls and spaces go, tabs and line ends anywhere.
std::string cleaned(std::string_view text)
{
    const auto blank = [](char c) { return static_cast<unsigned char>(c) <= 0x20; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    std::string out;
    out.reserve(text.size());
    std::copy_if(text.begin(), text.end(), std::back_inserter(out), [](char c) { return c != '\t' && c != '\n' && c != '\r'; });
    return out;
}

// "." and ".." also in their escaped spellings: 1, 2, or 0 for an ordinary segment.
int dots(std::string_view segment) noexcept
{
    int n = 0;
    while (!segment.empty()) {
        if (segment.front() == '.') segment.remove_prefix(1);
        else if (segment.size() >= 3 && segment[0] == '%' && segment[1] == '2' && to_lower(segment[2]) == 'e') segment.remove_prefix(3);
        else return 0;
        ++n;
    }
    return n <= 2 ? n : 0;
}

// Path state of the standard for special schemes: both slashes separate, dot segments are resolved, the rest is encoded.
std::string normal_path(std::string_view raw)
{
    std::vector<std::string_view> kept;
    if (!raw.empty() && slash(raw.front())) raw.remove_prefix(1);
    for (;;) {
        const auto end = std::find_if(raw.begin(), raw.end(), slash);
        const auto length = static_cast<std::size_t>(end - raw.begin());
        const std::string_view segment = raw.substr(0, length);
        const bool last = end == raw.end();
        const int n = dots(segment);
        if (n == 2 && !kept.empty()) kept.pop_back();
        if (n == 0) kept.push_back(segment);
        else if (last) kept.emplace_back();
        if (last) break;
        raw.remove_prefix(length + 1);
    }
    std::string out;
    for (const std::string_view segment : kept) {
        out.push_back('/');
        append_encoded(out, segment, path_set);
    }
    return out;
}

std::uint16_t default_of(std::string_view scheme) noexcept
{
    return scheme == "https" ? 443 : 80;
}

// Digits only, at most 65535; nothing at all is the default.
bool parse_port(std::string_view text, std::uint16_t& port) noexcept
{
    if (text.empty()) return true;
    std::uint32_t value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return false;
        value = value * 10 + static_cast<std::uint32_t>(c - '0');
        if (value > 65535) return false;
    }
    port = static_cast<std::uint16_t>(value);
    return true;
}

}  // namespace

const std::shared_ptr<const url::parts>& url::nowhere()
{
    static const auto none = std::make_shared<const parts>();
    return none;
}

boost::system::result<url> url::parse(std::string_view source)
{
    const boost::system::error_code bad = errc::invalid_url;
    const std::string text = cleaned(source);
    std::string_view rest = text;
    parts u;
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos) return bad;
    u.scheme.assign(rest.substr(0, colon));
    u.scheme = to_lower(u.scheme);
    if (u.scheme != "http" && u.scheme != "https") return bad;
    rest.remove_prefix(colon + 1);
    while (!rest.empty() && slash(rest.front())) rest.remove_prefix(1);

    const auto authority_end = std::find_if(rest.begin(), rest.end(), [](char c) { return slash(c) || c == '?' || c == '#'; });
    std::string_view authority = rest.substr(0, static_cast<std::size_t>(authority_end - rest.begin()));
    rest.remove_prefix(authority.size());
    const std::size_t at = authority.rfind('@');
    if (at != std::string_view::npos) {
        const std::string_view credentials = authority.substr(0, at);
        const std::size_t split = credentials.find(':');
        append_encoded(u.userinfo, credentials.substr(0, split), userinfo_set);
        if (split != std::string_view::npos && split + 1 < credentials.size()) {
            u.userinfo.push_back(':');
            append_encoded(u.userinfo, credentials.substr(split + 1), userinfo_set);
        }
        authority.remove_prefix(at + 1);
    }
    std::size_t host_end = authority.size();
    if (!authority.empty() && authority.front() == '[') {
        host_end = authority.find(']');
        if (host_end == std::string_view::npos) return bad;
        ++host_end;
        if (host_end < authority.size() && authority[host_end] != ':') return bad;
    } else host_end = std::min(authority.find(':'), authority.size());
    u.port = default_of(u.scheme);
    if (host_end < authority.size() && !parse_port(authority.substr(host_end + 1), u.port)) return bad;
    std::optional<base_detail::parsed_host> host = base_detail::parse_host(authority.substr(0, host_end));
    if (!host) return bad;
    u.host = std::move(host->text);
    u.kind = host->kind;

    rest = rest.substr(0, rest.find('#'));
    const std::size_t query = std::min(rest.find('?'), rest.size());
    u.target = normal_path(rest.substr(0, query));
    if (query < rest.size()) {
        u.target.push_back('?');
        append_encoded(u.target, rest.substr(query + 1), query_set);
    }
    return url(std::move(u));
}

namespace {

// What a message may show of a text that was meant to be a URL: user info and query may be secrets.
std::string presentable(std::string_view text)
{
    const std::size_t end = std::min(text.find_first_of("?#"), text.size());
    std::string out(text.substr(0, end));
    if (const std::size_t at = out.rfind('@'); at != std::string::npos) {
        const std::size_t slashes = out.find("//");
        const std::size_t from = slashes == std::string::npos || slashes > at ? 0 : slashes + 2;
        out.replace(from, at - from, "***");
    }
    if (end < text.size()) out += "?…";
    return out;
}

}  // namespace

url url::parse_or_throw(std::string_view text, std::string_view what)
{
    boost::system::result<url> r = parse(text);
    if (r) return std::move(*r);
    throw validation_error(std::string(what) + " is not an http or https URL: \"" + untrusted_text(presentable(text), 200) + "\"");
}

bool url::default_port() const noexcept
{
    return parts_->port == default_of(parts_->scheme);
}

std::string url::authority() const
{
    std::string out = parts_->kind == host_kind::ipv6 ? "[" + parts_->host + "]" : parts_->host;
    if (!default_port()) out += ":" + std::to_string(parts_->port);
    return out;
}

std::string url::origin() const
{
    return parts_->scheme + "://" + authority();
}
std::string url::text() const
{
    return origin() + parts_->target;
}

std::string url::redacted() const
{
    const std::size_t query = parts_->target.find('?');
    return origin() + (query == std::string::npos ? parts_->target : parts_->target.substr(0, query) + "?…");
}

bool url::loopback() const noexcept
{
    switch (parts_->kind) {
    case host_kind::name: return parts_->host == "localhost";
    case host_kind::ipv4: return parts_->host.starts_with("127.");
    case host_kind::ipv6: return parts_->host == "::1";
    }
    return false;
}

url url::joined(std::string_view suffix) const
{
    const std::size_t query = std::min(parts_->target.find('?'), parts_->target.size());
    std::string path = parts_->target.substr(0, query);
    const std::size_t suffix_query = std::min(suffix.find('?'), suffix.size());
    if (!path.empty() && path.back() == '/') path.pop_back();
    if (suffix_query != 0 && !slash(suffix.front())) path.push_back('/');
    path.append(suffix.substr(0, suffix_query));
    parts u = *parts_;
    u.target = normal_path(path);
    std::string both;
    if (suffix_query < suffix.size()) append_encoded(both, suffix.substr(suffix_query + 1), query_set);
    if (query < parts_->target.size()) {
        if (!both.empty()) both.push_back('&');
        both.append(parts_->target, query + 1);
    }
    if (!both.empty()) u.target += "?" + both;
    return url(std::move(u));
}

boost::system::result<url> url::resolve(std::string_view reference) const
{
    std::string ref = cleaned(reference);
    ref.resize(std::min(ref.find('#'), ref.size()));
    const std::size_t mark = ref.find_first_of(":/\\?");
    if (mark != std::string::npos && ref[mark] == ':') {
        // `http:path` without slashes is relative to an http document in the standard; nobody means it.
        const bool slashes = mark + 2 < ref.size() && slash(ref[mark + 1]) && slash(ref[mark + 2]);
        return slashes ? parse(ref) : boost::system::result<url>(make_error_code(errc::invalid_url));
    }
    if (ref.size() >= 2 && slash(ref[0]) && slash(ref[1])) return parse(parts_->scheme + ":" + ref);
    const std::string_view path(parts_->target.data(), std::min(parts_->target.find('?'), parts_->target.size()));
    const std::string here = origin();
    if (ref.empty()) return parse(here + parts_->target);
    if (slash(ref[0])) return parse(here + ref);
    if (ref[0] == '?') return parse(here + std::string(path) + ref);
    return parse(here + std::string(path.substr(0, path.rfind('/') + 1)) + ref);
}

}  // namespace reagent::inline v0
