#include <reagent/base/utf8.hpp>

#include <simdjson.h>

#include <cstdint>
#include <cstring>

namespace reagent::inline v0 {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

// What one step over the bytes found: `length` bytes that are a character, or a maximal subpart of one.
struct step {
    std::size_t length;
    bool good;
    bool cut;  // the input ended before the character did
};

// Unicode table 3-7: the lead byte decides how many bytes follow and the range of the second.
step take(std::string_view s, std::size_t at) noexcept
{
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    const unsigned char lead = byte(at);
    if (lead < 0x80) return {1, true, false};
    unsigned char low = 0x80, high = 0xBF;
    std::size_t want = 0;
    if (lead >= 0xC2 && lead <= 0xDF) want = 2;
    else if (lead >= 0xE0 && lead <= 0xEF) {
        want = 3;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        want = 4;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    } else return {1, false, false};
    std::size_t got = 1;
    while (got < want) {
        if (at + got == s.size()) return {got, false, true};
        const unsigned char next = byte(at + got);
        if (next < low || next > high) return {got, false, false};
        low = 0x80;
        high = 0xBF;
        ++got;
    }
    return {want, true, false};
}

// The first byte at or after `at` that is not ASCII.
std::size_t skip_ascii(std::string_view s, std::size_t at) noexcept
{
    while (at + 8 <= s.size()) {
        std::uint64_t word;
        std::memcpy(&word, s.data() + at, 8);
        if ((word & 0x8080808080808080u) != 0) break;
        at += 8;
    }
    while (at < s.size() && static_cast<unsigned char>(s[at]) < 0x80) ++at;
    return at;
}

constexpr std::size_t worth_vectors = 128;

}  // namespace

bool is_utf8(std::string_view bytes) noexcept
{
    if (bytes.size() >= worth_vectors) return simdjson::validate_utf8(bytes.data(), bytes.size());
    for (std::size_t at = skip_ascii(bytes, 0); at < bytes.size(); at = skip_ascii(bytes, at)) {
        const step s = take(bytes, at);
        if (!s.good) return false;
        at += s.length;
    }
    return true;
}

std::string repair_utf8(std::string_view bytes)
{
    std::string out;
    repair_utf8_to(out, bytes);
    return out;
}

void repair_utf8_to(std::string& out, std::string_view bytes)
{
    std::size_t kept = 0;
    for (std::size_t at = skip_ascii(bytes, 0); at < bytes.size(); at = skip_ascii(bytes, at)) {
        const step s = take(bytes, at);
        if (!s.good) {
            out.append(bytes.substr(kept, at - kept));
            out.append(replacement);
            kept = at + s.length;
        }
        at += s.length;
    }
    out.append(bytes.substr(kept));
}

std::size_t utf8_length(std::string_view text) noexcept
{
    std::size_t n = 0;
    for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return n;
}

std::string_view utf8_prefix(std::string_view text, std::size_t max) noexcept
{
    if (text.size() <= max) return text;
    std::size_t n = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
        if (n == max) return text.substr(0, i);
        ++n;
    }
    return text;
}

std::size_t utf8_incomplete_tail(std::string_view bytes) noexcept
{
    for (std::size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
        const std::size_t at = bytes.size() - back;
        const auto lead = static_cast<unsigned char>(bytes[at]);
        if ((lead & 0xC0) == 0x80) continue;
        const step s = take(bytes, at);
        return s.cut && s.length == back ? back : 0;
    }
    return 0;
}

void append_utf8(std::string& out, char32_t scalar)
{
    const auto put = [&](unsigned value) { out.push_back(static_cast<char>(value)); };
    const auto c = static_cast<unsigned>(scalar);
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) out.append(replacement);
    else if (c < 0x80) put(c);
    else if (c < 0x800) {
        put(0xC0 | (c >> 6));
        put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        put(0xE0 | (c >> 12));
        put(0x80 | ((c >> 6) & 0x3F));
        put(0x80 | (c & 0x3F));
    } else {
        put(0xF0 | (c >> 18));
        put(0x80 | ((c >> 12) & 0x3F));
        put(0x80 | ((c >> 6) & 0x3F));
        put(0x80 | (c & 0x3F));
    }
}

}  // namespace reagent::inline v0
