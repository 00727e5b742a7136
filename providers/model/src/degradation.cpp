#include <reagent/base/ascii.hpp>
#include <reagent/model/degradation.hpp>

#include <algorithm>
#include <array>

namespace reagent::inline v0 {

namespace {

bool letter(char c) noexcept
{
    c = to_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/// Offset of `word` (lower case) at or after `from`, ignoring case.
std::size_t find(std::string_view text, std::string_view word, std::size_t from = 0) noexcept
{
    if (from > text.size()) return std::string_view::npos;
    const auto at =
        std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), word.begin(), word.end(), [](char a, char b) { return to_lower(a) == b; });
    return at == text.end() ? std::string_view::npos : static_cast<std::size_t>(at - text.begin());
}

/// The word `only`, followed within 40 characters other than a period by `default`.
bool only_default(std::string_view text) noexcept
{
    constexpr std::size_t reach = 40;
    for (std::size_t at = find(text, "only"); at != std::string_view::npos; at = find(text, "only", at + 1)) {
        const std::size_t end = at + 4;
        if ((at > 0 && letter(text[at - 1])) || (end < text.size() && letter(text[end]))) continue;
        const std::size_t next = find(text, "default", end);
        if (next == std::string_view::npos) return false;
        std::size_t characters = 0;
        bool period = false;
        for (std::size_t i = end; i < next; ++i) {
            period = period || text[i] == '.';
            characters += (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U ? 1 : 0;
        }
        if (!period && characters <= reach) return true;
    }
    return false;
}

}  // namespace

bool says_temperature_unsupported(std::string_view message) noexcept
{
    constexpr std::array<std::string_view, 8> signs = {"deprecat",          "unsupported",     "not support",     "does not support",
                                                       "no longer support", "must be omitted", "isn't supported", "is not allowed"};
    if (find(message, "temperature") == std::string_view::npos) return false;
    return only_default(message) || std::any_of(signs.begin(), signs.end(), [&](std::string_view s) { return find(message, s) != std::string_view::npos; });
}

bool temperature_fallback::blamed(int status, bool temperature) noexcept
{
    if (status != 400 || !send() || !temperature) return false;
    dropped_ = true;
    return true;
}

thinking_ladder::thinking_ladder(thinking_mode mode, std::span<const std::string_view> shapes, std::optional<std::size_t> winner) noexcept
    : shapes_(shapes), mode_(mode), in_effect_(true), plain_(shapes.empty())
{
    if (winner && *winner < shapes.size()) {
        at_ = *winner;
        cached_ = true;
    }
}

thinking_ladder thinking_ladder::unswitchable(thinking_mode mode, std::string_view fixed) noexcept
{
    thinking_ladder out(mode, {}, std::nullopt);
    out.fixed_ = fixed;
    return out;
}

std::string_view thinking_ladder::members() const noexcept
{
    return plain_ ? fixed_ : shapes_[at_];
}

thinking_ladder::verdict thinking_ladder::refused(int status) noexcept
{
    if (plain_ || (status != 400 && status != 422)) return verdict::fail;
    if (cached_) {
        cached_ = false;
        winner_failed_ = true;
        at_ = 0;
        return verdict::resend;
    }
    if (++at_ == shapes_.size()) plain_ = true;
    return verdict::resend;
}

std::optional<thinking_status> thinking_ladder::accepted(thinking_signal seen) const noexcept
{
    if (!in_effect_) return std::nullopt;
    if (plain_) return thinking_status::unsupported;
    if (mode_ == thinking_mode::on) return thinking_status::applied;
    switch (seen) {
    case thinking_signal::unreadable: return thinking_status::unknown;
    case thinking_signal::none: return thinking_status::applied;
    case thinking_signal::seen: return thinking_status::ignored;
    }
    return thinking_status::unknown;
}

std::optional<std::size_t> thinking_ladder::winner() const noexcept
{
    if (!in_effect_ || plain_) return std::nullopt;
    return at_;
}

}  // namespace reagent::inline v0
