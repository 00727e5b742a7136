#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/base/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0 {

/// How an attempt ended.
enum class attempt_end : std::uint8_t {
    open,       ///< it is under way
    answered,   ///< it gave the result
    resent,     ///< its form was refused, and the provider sent another one
    failed,     ///< see `attempt_record::error`
    cancelled,  ///< by the caller, or as the loser of a hedge
    refused,    ///< nothing left: a circuit is open
    cached,     ///< nothing left: the answer was kept from an earlier call
    shared,     ///< nothing left: another caller's request gave the answer
};
std::string_view to_string(attempt_end e) noexcept;

/// One attempt of a logical call, for results, logs and tests.
class attempt_record {
public:
    attempt_record() = default;
    std::string provider, model;
    int status = 0;                        ///< HTTP status, 0 when no head came
    error_code error;                      ///< why it failed, none otherwise
    std::chrono::nanoseconds waited{0};    ///< since the call began or the attempt before it ended: back-off, rate window, admission
    std::chrono::nanoseconds duration{0};  ///< from its admission to its end
    attempt_end end = attempt_end::open;
    /// Whether it counts as a request.
    bool left() const noexcept { return end < attempt_end::refused; }
    json to_json() const;
};
json to_json(std::span<const attempt_record> records);

/// What the attempts of one logical call came to, in the order they left. Wrappers write it; a caller that wants it whatever becomes of the call puts
/// one into `generate_request::log`. One executor.
class attempt_log {
public:
    explicit attempt_log(clock_ptr clock = clock::system());
    const std::vector<attempt_record>& records() const noexcept { return records_; }
    /// Requests that left.
    unsigned attempts() const noexcept;

    /// An attempt leaves now; its place in `records`.
    std::size_t open(std::string provider, std::string model);
    /// The attempt is over on the wire.
    void settle(std::size_t place, int status) noexcept;
    void close(std::size_t place, attempt_end end, error_code error = {}) noexcept;
    /// The call was answered, or refused, without an attempt.
    void note(std::string provider, std::string model, attempt_end end, error_code error = {});

private:
    clock_ptr clock_;
    std::vector<attempt_record> records_;
    std::vector<steady_time> opened_;
    steady_time idle_since_;
};

}  // namespace reagent::inline v0
