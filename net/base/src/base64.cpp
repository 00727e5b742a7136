#include <reagent/base/base64.hpp>
#include <reagent/base/error.hpp>

#include <algorithm>
#include <cstdint>

namespace reagent::inline v0 {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int value_of(char c) noexcept
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::string base64_encode(std::string_view bytes)
{
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
        std::uint32_t bits = 0;
        for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0u);
        for (std::size_t k = 0; k < 4; ++k) out.push_back(k <= n ? alphabet[(bits >> (18 - 6 * k)) & 63] : '=');
    }
    return out;
}

boost::system::result<std::string> base64_decode(std::string_view text)
{
    const boost::system::error_code bad = errc::invalid_argument;
    if (text.size() % 4 != 0) return bad;
    std::string out;
    out.reserve(text.size() / 4 * 3);
    for (std::size_t i = 0; i < text.size(); i += 4) {
        std::size_t n = 4;
        if (i + 4 == text.size()) {
            while (n > 2 && text[i + n - 1] == '=') --n;
        }
        std::uint32_t bits = 0;
        for (std::size_t k = 0; k < 4; ++k) {
            const int v = k < n ? value_of(text[i + k]) : 0;
            if (v < 0) return bad;
            bits = bits << 6 | static_cast<std::uint32_t>(v);
        }
        if ((bits & (n == 2 ? 0xFFFFu : n == 3 ? 0xFFu : 0u)) != 0) return bad;
        for (std::size_t k = 0; k + 1 < n; ++k) out.push_back(static_cast<char>((bits >> (16 - 8 * k)) & 0xFF));
    }
    return out;
}

}  // namespace reagent::inline v0
