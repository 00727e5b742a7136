#pragma once
#include <boost/system/result.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// Removes gzip, x-gzip, deflate (zlib or raw) and identity codings incrementally, several in a row included. No I/O.
class content_decoder {
public:
    /// `coding` is the Content-Encoding value. Errors: `errc::bad_encoding`.
    static boost::system::result<content_decoder> make(std::string_view coding);
    content_decoder();
    content_decoder(content_decoder&&) noexcept;
    content_decoder& operator=(content_decoder&&) noexcept;
    ~content_decoder();
    bool identity() const noexcept;
    /// Appends what can be decoded to `out`. Errors: `errc::bad_encoding` for a corrupt stream, `errc::body_too_large` past `max_out` bytes in total.
    boost::system::result<void> feed(std::string_view bytes, std::string& out, std::size_t max_out = 0);
    /// Whether the coded stream has reached its end.
    bool ended() const noexcept;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace reagent::inline v0
