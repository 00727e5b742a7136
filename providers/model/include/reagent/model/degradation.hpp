#pragma once
#include <reagent/model/generate.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace reagent::inline v0 {

/// Whether a text says that the temperature parameter itself is unwelcome, not its value.
bool says_temperature_unsupported(std::string_view message) noexcept;

/// Decides whether a refused request is sent again without its temperature (spec/loop-and-providers.md §4.4). Once per call.
class temperature_fallback {
public:
    /// `wanted`: the call has a temperature.
    explicit temperature_fallback(bool wanted) noexcept : wanted_(wanted) {}
    /// Whether the next body carries the temperature.
    bool send() const noexcept { return wanted_ && !dropped_; }
    bool dropped() const noexcept { return dropped_; }
    /// True: drop it and send again. `message` is the service's own, unshortened.
    bool refused(int status, std::string_view message) noexcept { return blamed(status, says_temperature_unsupported(message)); }
    /// The same, when the codec has judged the message.
    bool blamed(int status, bool temperature) noexcept;

private:
    bool wanted_, dropped_ = false;
};

/// What a response tells about thinking: nothing readable, none, some.
enum class thinking_signal : std::uint8_t { unreadable, none, seen };

/// Walks the request shapes of `thinkingMode` (spec/loop-and-providers.md §4.5). A shape is JSON members without braces (`"reasoning_effort":"none"`), of
/// static storage.
class thinking_ladder {
public:
    enum class verdict : std::uint8_t { resend, fail };

    /// No mode in effect: one plain request, no status.
    thinking_ladder() noexcept = default;
    /// `winner`: the shape that worked last time, tried first.
    thinking_ladder(thinking_mode mode, std::span<const std::string_view> shapes, std::optional<std::size_t> winner) noexcept;
    /// One request carrying `fixed` (may be empty) whose status is `unsupported`.
    static thinking_ladder unswitchable(thinking_mode mode, std::string_view fixed) noexcept;

    /// Members to put into the next body, empty for a plain request.
    std::string_view members() const noexcept;
    /// The request was answered with a failure of this status: 400 and 422 refuse the shape, anything else is the caller's failure.
    verdict refused(int status) noexcept;
    /// The status of the accepted request; empty when no mode was in effect.
    std::optional<thinking_status> accepted(thinking_signal seen) const noexcept;
    /// After acceptance: the shape to remember.
    std::optional<std::size_t> winner() const noexcept;
    /// A remembered shape was refused: forget it.
    bool winner_failed() const noexcept { return winner_failed_; }
    /// All shapes were refused and the plain request is what was sent.
    bool exhausted() const noexcept { return in_effect_ && plain_ && !shapes_.empty(); }

private:
    std::span<const std::string_view> shapes_;
    std::string_view fixed_;
    std::size_t at_ = 0;
    thinking_mode mode_ = thinking_mode::on;
    bool in_effect_ = false, plain_ = true, cached_ = false, winner_failed_ = false;
};

}  // namespace reagent::inline v0
