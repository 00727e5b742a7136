#include "url_host.hpp"

#include <reagent/base/address.hpp>
#include <reagent/base/ascii.hpp>
#include <reagent/base/utf8.hpp>

#include <idn2.h>

#include <algorithm>
#include <vector>

namespace reagent::inline v0::base_detail {
namespace {

bool forbidden_in_domain(char c) noexcept
{
    const auto u = static_cast<unsigned char>(c);
    return u <= 0x20 || u == 0x7F || std::string_view("#/:<>?@[\\]^|%").find(c) != std::string_view::npos;
}

std::vector<std::string_view> split_labels(std::string_view host)
{
    std::vector<std::string_view> labels;
    for (std::size_t from = 0;;) {
        const std::size_t dot = host.find('.', from);
        labels.push_back(host.substr(from, dot - from));
        if (dot == std::string_view::npos) return labels;
        from = dot + 1;
    }
}

// Decimal, 0-octal or 0x-hex; values beyond 32 bits saturate, which is enough to refuse them.
std::optional<std::uint64_t> parse_part(std::string_view s) noexcept
{
    if (s.empty()) return {};
    int base = 10;
    if (s.size() >= 2 && s[0] == '0' && to_lower(s[1]) == 'x') {
        base = 16;
        s.remove_prefix(2);
    } else if (s.size() >= 2 && s[0] == '0') {
        base = 8;
        s.remove_prefix(1);
    }
    std::uint64_t value = 0;
    for (const char c : s) {
        const int v = hex_value(c);
        if (v < 0 || v >= base) return {};
        value = std::min<std::uint64_t>(value * static_cast<std::uint64_t>(base) + static_cast<std::uint64_t>(v), std::uint64_t(1) << 40);
    }
    return value;
}

bool ends_in_number(std::vector<std::string_view> labels) noexcept
{
    if (labels.size() > 1 && labels.back().empty()) labels.pop_back();
    const std::string_view last = labels.back();
    if (!last.empty() && std::all_of(last.begin(), last.end(), is_digit)) return true;
    return parse_part(last).has_value();
}

// "The IPv4 parser": one to four parts, the last one fills the bytes that are left.
std::optional<std::uint32_t> parse_v4(std::vector<std::string_view> parts) noexcept
{
    if (parts.size() > 1 && parts.back().empty()) parts.pop_back();
    if (parts.size() > 4) return {};
    std::uint64_t address = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::optional<std::uint64_t> value = parse_part(parts[i]);
        if (!value) return {};
        const bool last = i + 1 == parts.size();
        const std::size_t left = 4 - i;
        if (*value >= (last ? std::uint64_t(1) << (8 * left) : std::uint64_t(256))) return {};
        address |= last ? *value : *value << (8 * (3 - i));
    }
    return static_cast<std::uint32_t>(address);
}

bool needs_idna(std::string_view domain)
{
    if (std::any_of(domain.begin(), domain.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) return true;
    const std::vector<std::string_view> labels = split_labels(domain);
    return std::any_of(labels.begin(), labels.end(), [](std::string_view label) {
        return label.size() >= 4 && to_lower(label[0]) == 'x' && to_lower(label[1]) == 'n' && label[2] == '-' && label[3] == '-';
    });
}

// UTS 46, non-transitional, as "domain to ASCII" with beStrict false. ASCII names without "xn--" skip the table walk, as the standard allows.
std::optional<std::string> domain_to_ascii(const std::string& domain)
{
    std::string ascii;
    if (!needs_idna(domain)) {
        ascii = domain;
        ascii = to_lower(ascii);
        return ascii;
    }
    if (!is_utf8(domain) || domain.find('\0') != std::string::npos) return {};
    std::uint8_t* found = nullptr;
    const int status = idn2_lookup_u8(reinterpret_cast<const std::uint8_t*>(domain.c_str()), &found, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
    if (status != IDN2_OK) return {};
    ascii = reinterpret_cast<const char*>(found);
    idn2_free(found);
    ascii = to_lower(ascii);
    return ascii;
}

}  // namespace

std::string percent_decoded(std::string_view text)
{
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0) {
            out.push_back(static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2])));
            i += 2;
        } else out.push_back(text[i]);
    }
    return out;
}

std::optional<parsed_host> parse_host(std::string_view text)
{
    if (!text.empty() && text.front() == '[') {
        if (text.back() != ']') return {};
        const std::string_view inside = text.substr(1, text.size() - 2);
        const std::optional<ip_address> address = inside.find(':') == std::string_view::npos ? std::nullopt : ip_address::parse(inside);
        if (!address) return {};
        return parsed_host(url::host_kind::ipv6, address->to_string());
    }
    std::optional<std::string> ascii = domain_to_ascii(percent_decoded(text));
    if (!ascii || ascii->empty() || std::any_of(ascii->begin(), ascii->end(), forbidden_in_domain)) return {};
    const std::vector<std::string_view> labels = split_labels(*ascii);
    if (!ends_in_number(labels)) return parsed_host(url::host_kind::name, std::move(*ascii));
    const std::optional<std::uint32_t> v4 = parse_v4(labels);
    if (!v4) return {};
    return parsed_host(url::host_kind::ipv4, ip_address::v4(*v4).to_string());
}

}  // namespace reagent::inline v0::base_detail
