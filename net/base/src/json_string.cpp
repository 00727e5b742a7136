#include "json_string.hpp"

#include <reagent/base/ascii.hpp>
#include <reagent/base/json.hpp>
#include <reagent/base/utf8.hpp>

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace reagent::inline v0 {
namespace {

constexpr std::uint64_t ones = 0x0101010101010101u;
constexpr std::uint64_t highs = 0x8080808080808080u;

// Whether one of eight bytes is zero; exact as a yes or no, which is all that is asked.
constexpr bool has_zero(std::uint64_t v) noexcept
{
    return ((v - ones) & ~v & highs) != 0;
}

constexpr bool special(unsigned char c) noexcept
{
    return c == '"' || c == '\\' || c < 0x20;
}

// Moves to the first quote, backslash or control character; notes whether a byte above ASCII was passed.
std::size_t skip_plain(std::string_view s, std::size_t at, bool& above_ascii) noexcept
{
#ifdef __SSE2__
    while (at + 16 <= s.size()) {
        const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(s.data() + at));
        const __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
        const __m128i backslash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
        const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
        if (_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control)) != 0) break;
        above_ascii = above_ascii || _mm_movemask_epi8(v) != 0;
        at += 16;
    }
#endif
    while (at + 8 <= s.size()) {
        std::uint64_t w;
        std::memcpy(&w, s.data() + at, 8);
        const bool control = ((w - ones * 0x20) & ~w & highs) != 0;
        if (control || has_zero(w ^ (ones * '"')) || has_zero(w ^ (ones * '\\'))) break;
        above_ascii = above_ascii || (w & highs) != 0;
        at += 8;
    }
    for (; at < s.size() && !special(static_cast<unsigned char>(s[at])); ++at) above_ascii = above_ascii || static_cast<unsigned char>(s[at]) >= 0x80;
    return at;
}

// A run holds no quote, backslash or control character; all three are ASCII, so cutting there never splits a character.
void append_run(std::string& out, std::string_view run, bool above_ascii)
{
    if (!above_ascii || is_utf8(run)) out.append(run);
    else repair_utf8_to(out, run);
}

// Four hex digits at `at`; on failure `at` is on the byte that is none.
bool read_unit(std::string_view text, std::size_t& at, char32_t& unit) noexcept
{
    unit = 0;
    for (int i = 0; i < 4; ++i, ++at) {
        const int v = at < text.size() ? hex_value(text[at]) : -1;
        if (v < 0) return false;
        unit = unit * 16 + static_cast<char32_t>(v);
    }
    return true;
}

bool read_unicode_escape(std::string_view text, std::size_t& at, std::string& out)
{
    char32_t unit = 0;
    if (!read_unit(text, at, unit)) return false;
    if (unit >= 0xD800 && unit <= 0xDBFF && text.substr(at, 2) == "\\u") {
        std::size_t ahead = at + 2;
        char32_t low = 0;
        if (read_unit(text, ahead, low) && low >= 0xDC00 && low <= 0xDFFF) {
            at = ahead;
            unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    append_utf8(out, unit);  // writes U+FFFD for a surrogate left alone
    return true;
}

bool read_escape(std::string_view text, std::size_t& at, std::string& out)
{
    if (at == text.size()) return false;
    char c = text[at];
    switch (c) {
    case '"':
    case '\\':
    case '/': break;
    case 'b': c = '\b'; break;
    case 'f': c = '\f'; break;
    case 'n': c = '\n'; break;
    case 'r': c = '\r'; break;
    case 't': c = '\t'; break;
    case 'u': return read_unicode_escape(text, ++at, out);
    default: return false;
    }
    ++at;
    out.push_back(c);
    return true;
}

void append_escape(std::string& out, char c)
{
    switch (c) {
    case '"': out.append("\\\""); return;
    case '\\': out.append("\\\\"); return;
    case '\b': out.append("\\b"); return;
    case '\f': out.append("\\f"); return;
    case '\n': out.append("\\n"); return;
    case '\r': out.append("\\r"); return;
    case '\t': out.append("\\t"); return;
    default: break;
    }
    constexpr const char* hex = "0123456789abcdef";
    out.append("\\u00");
    out.push_back(hex[static_cast<unsigned char>(c) >> 4]);
    out.push_back(hex[static_cast<unsigned char>(c) & 15]);
}

}  // namespace

namespace base_detail {

bool read_json_string(std::string_view text, std::size_t& at, std::string& out)
{
    for (;;) {
        bool above_ascii = false;
        const std::size_t end = skip_plain(text, at, above_ascii);
        append_run(out, text.substr(at, end - at), above_ascii);
        at = end;
        if (at == text.size()) return false;
        if (text[at] == '"') {
            ++at;
            return true;
        }
        if (text[at] != '\\') return false;
        ++at;
        if (!read_escape(text, at, out)) return false;
    }
}

}  // namespace base_detail

void append_json_string(std::string& out, std::string_view text)
{
    out.push_back('"');
    for (std::size_t at = 0;;) {
        bool above_ascii = false;
        const std::size_t end = skip_plain(text, at, above_ascii);
        append_run(out, text.substr(at, end - at), above_ascii);
        if (end == text.size()) break;
        append_escape(out, text[end]);
        at = end + 1;
    }
    out.push_back('"');
}

}  // namespace reagent::inline v0
