#include "repeated_delta.hpp"

#include <reagent/base/utf8.hpp>

#include <algorithm>
#include <charconv>

namespace reagent::inline v0::model_detail {
namespace {

/// Of more digits a number may not fit, which is for the parser to say.
constexpr std::size_t most_digits = 18;

/// Bytes up to the closing quote of a string that means itself; nothing when it has escapes, controls or bytes that are no UTF-8.
std::optional<std::size_t> plain_text(std::string_view from) noexcept
{
    bool ascii = true;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const auto byte = static_cast<unsigned char>(from[i]);
        if (byte == '"') return ascii || is_utf8(from.substr(0, i)) ? std::optional(i) : std::nullopt;
        if (byte < 0x20 || byte == '\\') return std::nullopt;
        ascii = ascii && byte < 0x80;
    }
    return std::nullopt;
}

/// Bytes of a whole number without a sign.
std::optional<std::size_t> plain_digits(std::string_view from) noexcept
{
    std::size_t n = 0;
    while (n < from.size() && from[n] >= '0' && from[n] <= '9') ++n;
    if (n == 0 || n > most_digits || (from[0] == '0' && n > 1)) return std::nullopt;
    return n;
}

}  // namespace

bool repeated_delta::leave_out(std::string_view chunk, std::string_view key, kind holds, std::size_t number)
{
    if (key.empty()) return true;
    const std::size_t found = chunk.find(key);
    if (found == std::string_view::npos) return true;
    if (chunk.find(key, found + 1) != std::string_view::npos) return false;
    std::size_t at = chunk.find_first_not_of(" \t\r\n", found + key.size());
    if (at == std::string_view::npos || chunk[at] != ':') return true;  // the word is a value
    at = chunk.find_first_not_of(" \t\r\n", at + 1);
    if (at == std::string_view::npos) return true;
    if (holds == kind::digits) {
        const auto n = plain_digits(chunk.substr(at));
        // What goes on as a fraction or an exponent stays as it is.
        if (!n || at + *n == chunk.size() || std::string_view(".eE").find(chunk[at + *n]) != std::string_view::npos) return true;
    } else {
        if (chunk[at] != '"') return true;
        ++at;
    }
    places_[count_++] = {at, holds, number};
    return true;
}

void repeated_delta::learn(std::string_view chunk, std::string_view delta)
{
    if (vain_ >= patience || chunk.size() > longest) return;
    sample_.clear();
    count_ = 0;
    // Without a backslash no key hides behind escapes, so a name that is found once is there once, and inside no string.
    if (delta.empty() || chunk.find('\\') != std::string_view::npos) return;
    if (!leave_out(chunk, shape_.text, kind::content) || count_ == 0 || !chunk.substr(places_[0].at).starts_with(delta)) return;
    for (std::size_t i = 0; i < shape_.digits.size(); ++i)
        if (!leave_out(chunk, shape_.digits[i], kind::digits, i)) return;
    for (const std::string_view name : shape_.strings)
        if (!leave_out(chunk, name, kind::text)) return;
    numbers_ = {};
    ++vain_;
    std::sort(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(count_), [](const place& a, const place& b) { return a.at < b.at; });
    std::size_t copied = 0;
    for (std::size_t i = 0; i < count_; ++i) {
        place& p = places_[i];
        sample_.append(chunk.substr(copied, p.at - copied));
        copied = p.at + (p.holds == kind::digits ? plain_digits(chunk.substr(p.at)) : plain_text(chunk.substr(p.at))).value_or(0);
        p.at = sample_.size();
    }
    sample_.append(chunk.substr(copied));
}

std::optional<std::string_view> repeated_delta::match(std::string_view chunk)
{
    if (sample_.empty()) return std::nullopt;
    std::string_view sample = sample_, content;
    std::size_t passed = 0;
    for (std::size_t i = 0; i < count_; ++i) {
        const place& p = places_[i];
        const std::string_view same = sample.substr(0, p.at - passed);
        if (!chunk.starts_with(same)) return std::nullopt;
        sample.remove_prefix(same.size());
        chunk.remove_prefix(same.size());
        passed = p.at;
        const auto length = p.holds == kind::digits ? plain_digits(chunk) : plain_text(chunk);
        if (!length) return std::nullopt;
        if (p.holds == kind::content) content = chunk.substr(0, *length);
        if (p.holds == kind::digits) std::from_chars(chunk.data(), chunk.data() + *length, numbers_[p.number].emplace());
        chunk.remove_prefix(*length);
    }
    if (chunk != sample || content.empty()) return std::nullopt;
    vain_ = 0;
    return content;
}

}  // namespace reagent::inline v0::model_detail
