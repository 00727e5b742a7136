#pragma once
#include <reagent/net/http_types.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0::net_detail {

struct request_limits {
    std::size_t line = 8 * 1024;               ///< bytes of the request line: 414
    std::size_t head = 64 * 1024;              ///< of line and fields together, and of trailers: 431
    std::uint64_t body = 64ull * 1024 * 1024;  ///< decoded; 0 is no limit: 413
};

struct request_head {
    std::string method, target;  ///< target in origin form: of an absolute one the path and query
    http_fields fields;          ///< with an absolute target Host is its host
    unsigned minor = 1;          ///< of HTTP/1.x
};

/// One HTTP/1.1 request from bytes, without I/O (RFC 9112). What two readers could take for two different requests is refused, as RFC 9112, section 11.2
/// advises: both framings, a length given twice, folded lines, bare CR or LF, chunked in HTTP/1.0, no or two Host fields.
/// The caller owns the bytes. What `feed` could not use must be handed in again, with more behind it. A reader that failed reads no more: what stands
/// behind the fault cannot be told.
class request_reader {
public:
    struct outcome {
        std::size_t consumed = 0;  ///< bytes done with; fewer than given when the rest is incomplete or behind the end of the request
        std::size_t body_at = 0;   ///< where in the given bytes the body bytes now stand together
        std::size_t body_size = 0;
    };

    explicit request_reader(request_limits limits = {});
    request_reader(const request_reader&) = delete;
    request_reader& operator=(const request_reader&) = delete;
    ~request_reader();

    /// Forgets everything: ready for another request.
    void reset() noexcept;
    /// Parses `n` bytes at `data`; body bytes of several chunks are moved together in place, towards the front.
    outcome feed(char* data, std::size_t n);

    bool head_done() const noexcept { return head_done_; }
    bool done() const noexcept { return done_; }
    bool failed() const noexcept { return status_ != 0; }
    /// The status to refuse with, 0 unless failed, and our words for it; the text is static.
    unsigned status() const noexcept { return status_; }
    std::string_view failure_text() const noexcept { return failure_text_; }
    /// Whether the client lets the connection go on after this request; asked after `head_done`.
    bool keep_alive() const noexcept { return keep_alive_; }
    /// Whether the client holds the body back until it is asked for it.
    bool wants_continue() const noexcept { return wants_continue_; }
    std::optional<std::uint64_t> content_length() const noexcept { return content_length_; }
    /// The caller may move it away once done.
    request_head& head() noexcept { return head_; }

private:
    class parser;
    void start() noexcept;
    void fail(unsigned status, std::string_view text) noexcept;
    std::size_t skip_blank_lines(const char* data, std::size_t n);
    std::size_t head_size(const char* data, std::size_t n);
    void read_head(const char* data, std::size_t n);
    void check_head();
    void check_target();
    void check_framing();

    // The Beast parser lives here, so that one unit only sees Beast and a request costs no allocation for it.
    alignas(8) std::byte storage_[112];
    parser* parser_ = nullptr;
    request_limits limits_;
    request_head head_;
    std::size_t line_at_ = 0, scanned_ = 0, lines_ = 0, blank_ = 0;
    std::uint64_t body_bytes_ = 0, framing_bytes_ = 0;
    std::optional<std::uint64_t> content_length_;
    std::string_view failure_text_;
    unsigned status_ = 0;
    unsigned hosts_ = 0, lengths_ = 0, transfers_ = 0;
    bool head_done_ = false, done_ = false, keep_alive_ = false, wants_continue_ = false;
};

}  // namespace reagent::inline v0::net_detail
