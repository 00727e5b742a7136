#pragma once
#include <boost/beast/http/basic_parser.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace reagent::inline v0::net_detail {

/// What the parsers of requests and of responses do alike: body bytes of several chunks are moved together, in place, towards the front of what one
/// `feed` was given. For the two readers alone, as it shows Beast.
template <bool is_request>
class body_parser : public boost::beast::http::basic_parser<is_request> {
public:
    char* body = nullptr;
    std::size_t body_size = 0;

    /// Beast asserts that a last chunk it looks at twice has five bytes, which one that is also the first need not have.
    bool needs_more_first(const char* data, std::size_t n) const { return this->chunked() && !chunk_begun_ && n < 5 && data[0] == '0'; }

protected:
    using view = boost::beast::string_view;
    using code = boost::system::error_code;

private:
    void on_header_impl(code&) override {}
    void on_body_init_impl(const boost::optional<std::uint64_t>&, code&) override {}
    std::size_t on_body_impl(view piece, code&) override { return take(piece); }
    void on_chunk_header_impl(std::uint64_t, view, code&) override { chunk_begun_ = true; }
    std::size_t on_chunk_body_impl(std::uint64_t, view piece, code&) override { return take(piece); }
    void on_finish_impl(code&) override {}

    std::size_t take(view piece) noexcept
    {
        char* from = const_cast<char*>(piece.data());  // the caller of feed gave us writable bytes
        if (body_size == 0) body = from;
        else std::memmove(body + body_size, from, piece.size());
        body_size += piece.size();
        return piece.size();
    }

    bool chunk_begun_ = false;
};

}  // namespace reagent::inline v0::net_detail
