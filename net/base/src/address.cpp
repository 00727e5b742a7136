#include <reagent/base/address.hpp>
#include <reagent/base/ascii.hpp>

#include <algorithm>

namespace reagent::inline v0 {
namespace {

// Four decimal parts without leading zeros and nothing else.
std::optional<std::uint32_t> parse_v4(std::string_view text) noexcept
{
    std::uint32_t bits = 0;
    std::size_t at = 0;
    for (int part = 0; part < 4; ++part) {
        if (part != 0) {
            if (at == text.size() || text[at] != '.') return {};
            ++at;
        }
        std::uint32_t value = 0;
        const std::size_t from = at;
        while (at < text.size() && is_digit(text[at]) && at - from < 3) value = value * 10 + static_cast<std::uint32_t>(text[at++] - '0');
        if (at == from || value > 255 || (at - from > 1 && text[from] == '0')) return {};
        bits = bits << 8 | value;
    }
    if (at != text.size()) return {};
    return bits;
}

// RFC 4291 section 2.2: eight groups, one "::", the last two groups possibly as an IPv4 address.
std::optional<std::array<std::uint8_t, 16>> parse_v6(std::string_view text) noexcept
{
    std::array<std::uint16_t, 8> groups{};
    std::size_t n = 0, gap = 8 + 1;
    std::size_t at = 0;
    if (text.substr(0, 2) == "::") {
        gap = 0;
        at = 2;
    } else if (text.substr(0, 1) == ":") return {};
    while (at < text.size()) {
        if (n == 8) return {};
        std::uint32_t value = 0;
        const std::size_t from = at;
        for (int v; at < text.size() && at - from < 4 && (v = hex_value(text[at])) >= 0; ++at) value = value * 16 + static_cast<std::uint32_t>(v);
        if (at < text.size() && text[at] == '.') {
            const std::optional<std::uint32_t> v4 = parse_v4(text.substr(from));
            if (!v4 || n > 6) return {};
            groups[n++] = static_cast<std::uint16_t>(*v4 >> 16);
            groups[n++] = static_cast<std::uint16_t>(*v4 & 0xFFFF);
            at = text.size();
            break;
        }
        if (at == from) return {};
        groups[n++] = static_cast<std::uint16_t>(value);
        if (at == text.size()) break;
        if (text[at] != ':') return {};
        ++at;
        if (at < text.size() && text[at] == ':') {
            if (gap <= 8) return {};
            gap = n;
            ++at;
        } else if (at == text.size()) return {};
    }
    if (gap > 8 ? n != 8 : n > 7) return {};
    std::array<std::uint8_t, 16> bytes{};
    const std::size_t head = std::min(gap, n);
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t place = i < head ? i : 8 - n + i;
        bytes[2 * place] = static_cast<std::uint8_t>(groups[i] >> 8);
        bytes[2 * place + 1] = static_cast<std::uint8_t>(groups[i] & 0xFF);
    }
    return bytes;
}

void append_hex(std::string& out, unsigned group)
{
    bool started = false;
    for (int shift = 12; shift >= 0; shift -= 4) {
        const unsigned d = (group >> shift) & 15;
        started = started || d != 0 || shift == 0;
        if (started) out.push_back("0123456789abcdef"[d]);
    }
}

}  // namespace

std::optional<ip_address> ip_address::parse(std::string_view text)
{
    if (const std::optional<std::uint32_t> bits = parse_v4(text)) return v4(*bits);
    if (const auto bytes = parse_v6(text)) return v6(*bytes);
    return {};
}

ip_address ip_address::v4(std::uint32_t host_order) noexcept
{
    ip_address a;
    a.v4_ = true;
    for (std::size_t i = 0; i < 4; ++i) a.bytes_[12 + i] = static_cast<std::uint8_t>(host_order >> (24 - 8 * i));
    return a;
}

ip_address ip_address::v6(const std::array<std::uint8_t, 16>& bytes) noexcept
{
    ip_address a;
    a.bytes_ = bytes;
    return a;
}

std::uint32_t ip_address::v4_bits() const noexcept
{
    std::uint32_t bits = 0;
    for (std::size_t i = 12; i < 16; ++i) bits = bits << 8 | bytes_[i];
    return bits;
}

std::string ip_address::to_string() const
{
    std::string out;
    if (v4_) {
        for (std::size_t i = 12; i < 16; ++i) {
            if (i != 12) out.push_back('.');
            out.append(std::to_string(bytes_[i]));
        }
        return out;
    }
    std::array<unsigned, 8> groups{};
    for (std::size_t i = 0; i < 8; ++i) groups[i] = static_cast<unsigned>(bytes_[2 * i]) << 8 | bytes_[2 * i + 1];
    // The first longest run of two or more zero groups is written "::".
    std::size_t best = 8, length = 1;
    for (std::size_t i = 0; i < 8;) {
        std::size_t end = i;
        while (end < 8 && groups[end] == 0) ++end;
        if (end - i > length) {
            best = i;
            length = end - i;
        }
        i = end + 1;
    }
    for (std::size_t i = 0; i < 8;) {
        if (i == best) {
            out.append("::");
            i += length;
            continue;
        }
        if (i != 0 && i != best + length) out.push_back(':');
        append_hex(out, groups[i]);
        ++i;
    }
    return out;
}

bool ip_address::loopback() const noexcept
{
    if (v4_) return bytes_[12] == 127;
    return std::all_of(bytes_.begin(), bytes_.end() - 1, [](std::uint8_t b) { return b == 0; }) && bytes_[15] == 1;
}

}  // namespace reagent::inline v0
