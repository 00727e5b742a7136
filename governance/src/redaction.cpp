#include <reagent/base/ascii.hpp>
#include <reagent/governance/redaction.hpp>

#include <algorithm>

namespace reagent::inline v0 {
namespace {

bool alnum(char c) noexcept
{
    return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z');
}
bool blank(char c) noexcept
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}
bool token_char(char c) noexcept
{
    return alnum(c) || c == '.' || c == '_' || c == '-' || c == '+' || c == '/' || c == '=';
}
bool word_or_dash(char c) noexcept
{
    return alnum(c) || c == '_' || c == '-';
}
bool userinfo_char(char c) noexcept
{
    return static_cast<unsigned char>(c) > 0x20 && c != '/' && c != '?' && c != '#' && c != '"' && c != '\'' && c != '\\';
}

std::size_t run_of(std::string_view s, std::size_t from, bool (*in)(char) noexcept) noexcept
{
    std::size_t at = from;
    while (at < s.size() && in(s[at])) ++at;
    return at - from;
}

/// Length of a secret that begins at the start of `s`, else 0.
std::size_t bearer_length(std::string_view s) noexcept
{
    // A scheme name is case-insensitive (RFC 9110 section 11.1), so `bearer …` is as secret as `Bearer …`.
    if (!starts_but_case(s, "bearer")) return 0;
    const std::size_t blanks = run_of(s, 6, blank);
    const std::size_t token = blanks ? run_of(s, 6 + blanks, token_char) : 0;
    return token ? 6 + blanks + token : 0;
}

std::size_t sk_length(std::string_view s) noexcept
{
    if (!s.starts_with("sk-")) return 0;
    const std::size_t n = run_of(s, 3, word_or_dash);
    return n >= 16 ? 3 + n : 0;
}

std::size_t userinfo_length(std::string_view after_slashes) noexcept
{
    const std::size_t n = run_of(after_slashes, 0, userinfo_char);
    const std::size_t at = after_slashes.substr(0, n).rfind('@');
    return at == std::string_view::npos ? 0 : at;
}

/// One cheap pass; most strings hold none.
bool may_hold_secret(std::string_view s) noexcept
{
    for (std::size_t i = 0; i < s.size(); ++i) {
        const char c = s[i];
        if (c == 's' && s.substr(i).starts_with("sk-")) return true;
        if (c == ':' && s.substr(i).starts_with("://")) return true;
        if ((c == 'b' || c == 'B') && starts_but_case(s.substr(i), "bearer")) return true;
    }
    return false;
}

}  // namespace

redactor::redactor() : exact_{"apikey", "api_key", "authorization"} {}

redactor& redactor::keys(std::vector<std::string> names)
{
    for (std::string& n : names) {
        if (n.starts_with('*')) suffixes_.push_back(to_lower(std::string_view(n).substr(1)));
        else exact_.push_back(to_lower(n));
    }
    return *this;
}

bool redactor::secret_key(std::string_view key) const noexcept
{
    const auto same = [](std::string_view a, std::string_view b) { return a.size() == b.size() && starts_but_case(a, b); };
    return std::any_of(exact_.begin(), exact_.end(), [&](const std::string& k) { return same(key, k); }) ||
        std::any_of(suffixes_.begin(), suffixes_.end(),
                    [&](const std::string& k) { return key.size() >= k.size() && starts_but_case(key.substr(key.size() - k.size()), k); });
}

std::string redactor::text(std::string_view s) const
{
    std::string out;
    out.reserve(s.size());
    for (std::size_t i = 0; i < s.size();) {
        const std::string_view rest = s.substr(i);
        std::size_t n = bearer_length(rest);
        if (!n) n = sk_length(rest);
        if (n) {
            std::string prefix(rest.substr(0, 4));
            std::replace_if(
                prefix.begin(), prefix.end(), [](char c) { return c == '\\' || c == '"'; }, '_');
            out.append("[REDACTED:pattern=").append(prefix).append("...]");
            i += n;
        } else if (rest.starts_with("://")) {
            out.append("://");
            i += 3;
            if (const std::size_t info = userinfo_length(s.substr(i))) {
                out.append("[REDACTED:userinfo]");
                i += info;
            }
        } else {
            out.push_back(s[i++]);
        }
    }
    return out;
}

// The patterns are tried on decoded strings and keys only: their characters include neither quotes nor escapes, so the serialised form holds
// no further match.
void redactor::walk(json& value, int depth) const
{
    switch (value.type()) {
    case json::kind::string:
        if (may_hold_secret(value.as_string())) value = json(text(value.as_string()));
        return;
    case json::kind::array:
        if (depth >= max_depth) value = json("[REDACTED:depth]");
        else
            for (json& e : value.as_array()) walk(e, depth + 1);
        return;
    case json::kind::object:
        if (depth >= max_depth) {
            value = json("[REDACTED:depth]");
            return;
        }
        for (auto& [key, member] : value.as_object()) {
            if (secret_key(key)) member = json("[REDACTED:key=" + key + ']');
            else walk(member, depth + 1);
            if (may_hold_secret(key)) key = text(key);
        }
        return;
    default: return;
    }
}

json redactor::operator()(json value) const
{
    apply(value);
    return value;
}

}  // namespace reagent::inline v0
