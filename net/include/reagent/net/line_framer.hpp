#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// What `line_framer` finds.
class framed_line {
public:
    std::string_view text;     ///< without its end; empty when it was too long
    bool too_long = false;     ///< it passed the limit and is skipped to its end
    std::uint64_t number = 0;  ///< from 1, skipped lines counted
};

/// Lines ended by LF or CRLF, bytes in, lines out, any cut of the input. No I/O. A byte order mark at the start of a line is dropped, lines of white space
/// alone are skipped. A line longer than `max_line` bytes (its end not counted) is told once, as soon as it is, and kept no further; the next one is whole
/// again. Each byte is looked at once for a line end. Never throws but for memory.
///
///     framer.feed(bytes);
///     while (framer.next(line)) use(line);     // views live until the next call of feed, next or finish
class line_framer {
public:
    static constexpr std::size_t default_max_line = 16 * 1024 * 1024;
    explicit line_framer(std::size_t max_line = default_max_line) noexcept : max_line_(max_line) {}
    /// Hands in the next bytes. `bytes` must live until `next` answered false; what is unfinished is then kept inside.
    void feed(std::string_view bytes) noexcept;
    bool next(framed_line& out);
    /// At the end of the input: a last line without its end. False when nothing is pending.
    bool finish(framed_line& out);
    /// Bytes looked at so far, for tests of linear cost.
    std::uint64_t bytes_scanned() const noexcept { return scanned_; }
    /// Bytes kept inside between two feeds.
    std::size_t buffered() const noexcept { return kept_.size(); }

private:
    bool accept(std::string_view line, framed_line& out) const noexcept;
    void forget_line();

    std::string kept_;  // the start of a line whose end has not come
    std::string_view input_;
    std::size_t max_line_;
    std::uint64_t scanned_ = 0, ends_ = 0;
    bool skipping_ = false;   // inside a line that is too long and was told
    bool used_kept_ = false;  // kept_ was given out
};

}  // namespace reagent::inline v0
