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

/// Server-sent events by the HTML standard (spec/loop-and-providers.md §3.1), bytes in, events out, any cut of the input. No I/O. Bytes are touched
/// once: the scan resumes where it stopped. Never throws but for memory.
///
///     parser.feed(bytes);
///     while (parser.next(event)) use(event);      // views live until the next call of feed or next
///     if (parser.failed()) …                      // an event passed max_event bytes
class sse_parser {
public:
    explicit sse_parser(std::size_t max_event = 16 * 1024 * 1024);
    /// Hands in the next bytes. `bytes` must live until `next` answered false; what is unfinished is then kept inside.
    void feed(std::string_view bytes);
    bool next(sse_event& out);
    /// At a clean end of the body: a pending event without its blank line is dispatched too (deviation of §3.1).
    bool finish(sse_event& out);
    bool failed() const noexcept { return failed_; }
    /// Bytes of input looked at so far, for tests of linear cost (cases A6, A8).
    std::size_t bytes_scanned() const noexcept { return scanned_; }
    std::size_t buffered() const noexcept { return line_.size() + data_.size(); }

private:
    // The implementer may change everything private.
    std::string line_, data_, type_, dispatched_, dispatched_type_;
    std::string_view input_;
    std::size_t pos_ = 0, max_event_, scanned_ = 0;
    bool last_cr_ = false, failed_ = false, have_data_ = false, bom_checked_ = false;
};

}  // namespace reagent::inline v0
