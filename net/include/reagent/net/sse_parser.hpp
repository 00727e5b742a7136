#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

class sse_event {
public:
    std::string_view data;  ///< lines joined by LF; 64 readable bytes follow it when the fed buffer had them
    std::string_view type;  ///< the `event` field, empty when absent
};

/// Server-sent events by the HTML standard (spec/loop-and-providers.md §3.1), bytes in, events out, any cut of the input. No I/O. An event in one
/// piece with one `data` line is a view of the fed bytes; others are put together inside. Each byte is looked at a fixed number of times: the scan
/// resumes where it stopped. An event of empty `data` lines only is an event. Never throws but for memory.
///
///     parser.feed(bytes);
///     while (parser.next(event)) use(event);      // views live until the next call of feed, next or finish
///     if (parser.failed()) …                      // an event passed max_event bytes
class sse_parser {
public:
    explicit sse_parser(std::size_t max_event = 16 * 1024 * 1024);
    /// Hands in the next bytes. `bytes` must live until `next` answered false; what is unfinished is then kept inside.
    void feed(std::string_view bytes) noexcept;
    bool next(sse_event& out);
    /// At a clean end of the body: a pending event without its blank line is dispatched too (deviation of §3.1), its last line with or without a
    /// line end. False when nothing is pending.
    bool finish(sse_event& out);
    bool failed() const noexcept { return failed_; }
    /// Bytes of input looked at so far, for tests of linear cost (cases A6, A8).
    std::size_t bytes_scanned() const noexcept { return scanned_; }
    /// Bytes kept inside between two feeds.
    std::size_t buffered() const noexcept { return line_.size() + data_.size() + type_.size(); }

private:
    std::size_t line_end() noexcept;
    bool take_line(std::string_view line, bool lasting);
    void add_data(std::string_view value, bool lasting);
    void dispatch(sse_event& out) noexcept;
    void clear_event();
    void keep_views();
    bool over_limit(std::size_t more) noexcept;

    std::string line_;            // a line whose end has not come yet
    std::string data_, type_;     // fields of the pending event that could not stay views
    std::string_view data_view_;  // the pending event's only data line so far, inside input_
    std::string_view type_view_;
    std::string_view input_;
    std::size_t pos_ = 0;
    std::size_t next_lf_ = 0, next_cr_ = 0;  // next line ends at or after pos_, input_.size() when there is none
    std::size_t max_event_, scanned_ = 0;
    bool have_data_ = false, data_owned_ = false, type_owned_ = false;
    bool last_cr_ = false, failed_ = false, first_line_ = true, dispatched_ = false, stale_ends_ = true;
};

}  // namespace reagent::inline v0
