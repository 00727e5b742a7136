#pragma once
#include <reagent/base/error.hpp>
#include <reagent/net/http_types.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace reagent::inline v0::net_detail {

/// One HTTP/1.1 response from bytes, without I/O: head (1xx skipped, 100 remembered), then the body by chunks, Content-Length or end of connection (RFC 9112, section 6).
/// The caller owns the bytes. What `feed` could not use must be handed in again, with more behind it.
class response_reader {
public:
    struct outcome {
        std::size_t consumed = 0;  ///< bytes done with; fewer than given when the rest is incomplete or behind the end of the response
        std::size_t body_at = 0;   ///< where in the given bytes the body bytes now stand together
        std::size_t body_size = 0;
    };

    /// `no_body`: the answer to a HEAD request. `may_switch`: 101 is an answer, and what follows its head is not HTTP.
    explicit response_reader(std::size_t max_head = 64 * 1024, bool no_body = false, bool may_switch = false);
    response_reader(const response_reader&) = delete;
    response_reader& operator=(const response_reader&) = delete;
    ~response_reader();

    /// Forgets everything: ready for another response.
    void reset() noexcept;
    /// Parses `n` bytes at `data`; body bytes of several chunks are moved together in place, towards the front.
    outcome feed(char* data, std::size_t n);
    /// The peer ended. `clean`: by a FIN (plain) or close_notify (TLS).
    void end_of_input(bool clean);

    bool head_done() const noexcept { return head_done_; }
    /// Whether a 100 has come: the peer wants the body of a request that asked (RFC 9110, section 10.1.1).
    bool continue_seen() const noexcept { return continue_seen_; }
    bool done() const noexcept { return done_; }
    /// Whether the connection may carry another request; asked after `done`.
    bool keep_alive() const noexcept { return done_ && keep_alive_; }
    bool failed() const noexcept { return failure_ != errc{}; }
    errc failure() const noexcept { return failure_; }
    /// Our words for the failure; the text is static.
    std::string_view failure_text() const noexcept { return failure_text_; }
    std::optional<std::uint64_t> content_length() const noexcept { return content_length_; }
    const http_head& head() const noexcept { return head_; }
    /// Fields behind a chunked body, without those that frame, route or authorise (RFC 9110, section 6.5.1); null when there are none.
    const http_fields* trailers() const noexcept { return trailers_.get(); }

private:
    class parser;
    void start() noexcept;
    void add_trailer(std::string_view name, std::string_view value);
    void fail(errc what, std::string_view text) noexcept;
    bool read_head(char* data, std::size_t n, outcome& out);
    bool put_head(const char* data, std::size_t n);
    void finish_head();
    void finish();

    // The Beast parser lives here, so that one unit only sees Beast and a response costs no allocation for it.
    alignas(8) std::byte storage_[112];
    parser* parser_ = nullptr;
    http_head head_;
    std::unique_ptr<http_fields> trailers_;
    std::size_t max_head_, head_bytes_ = 0, scanned_ = 0;
    std::optional<std::uint64_t> content_length_;
    std::string_view failure_text_;
    errc failure_{};
    bool no_body_, may_switch_, head_done_ = false, done_ = false, keep_alive_ = false, ambiguous_ = false, continue_seen_ = false;
    bool old_ = false;  // HTTP/1.0
};

}  // namespace reagent::inline v0::net_detail
