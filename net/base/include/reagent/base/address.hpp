#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// An IPv4 or IPv6 address without a port.
class ip_address {
public:
    ip_address() = default;
    /// Strict text forms only: dotted decimal, RFC 4291 without zone.
    static std::optional<ip_address> parse(std::string_view text);
    static ip_address v4(std::uint32_t host_order) noexcept;
    static ip_address v6(const std::array<std::uint8_t, 16>& bytes) noexcept;
    bool is_v4() const noexcept { return v4_; }
    std::uint32_t v4_bits() const noexcept;
    const std::array<std::uint8_t, 16>& bytes() const noexcept { return bytes_; }  ///< v4 in the last four bytes
    std::string to_string() const;
    bool loopback() const noexcept;
    friend bool operator==(const ip_address&, const ip_address&) = default;

private:
    std::array<std::uint8_t, 16> bytes_{};
    bool v4_ = false;
};

}  // namespace reagent::inline v0
