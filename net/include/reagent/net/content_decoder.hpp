#pragma once
#include <boost/system/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// Removes gzip, x-gzip, deflate (zlib or raw) and identity codings incrementally, several in a row included (at most `max_layers`). No I/O.
class content_decoder {
public:
    static constexpr std::size_t max_layers = 4;
    /// `coding` is the Content-Encoding value. Errors: `errc::bad_encoding`.
    static boost::system::result<content_decoder> make(std::string_view coding);
    /// Identity.
    content_decoder();
    content_decoder(content_decoder&&) noexcept;
    content_decoder& operator=(content_decoder&&) noexcept;
    ~content_decoder();
    bool identity() const noexcept;
    /// Appends what can be decoded to `out`. Errors: `errc::bad_encoding` for a corrupt stream or bytes behind its end, `errc::body_too_large`
    /// once more than `max_out` bytes have come out in total (0 is off); at most 16 KiB are decoded past that limit. After an error it stays failed.
    boost::system::result<void> feed(std::string_view bytes, std::string& out, std::uint64_t max_out = 0);
    /// Whether the coded stream has reached its end. A stream of no bytes at all counts as ended.
    bool ended() const noexcept;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace reagent::inline v0
