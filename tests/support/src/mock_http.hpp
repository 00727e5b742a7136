/// Requests off a byte buffer, without I/O.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reagent::inline v0::testing_detail {

struct mock_request {
    std::string method, target;
    std::vector<std::pair<std::string, std::string>> headers;  ///< lower-case names
    std::string body;
    bool keep_alive = true;
    std::string_view header(std::string_view lower_name) const;
};

/// Finds one request after another in what a client sent. The scan for the end of a head and for chunks resumes where it stopped.
class mock_request_reader {
public:
    enum class state { need_more, wants_continue, ready, bad_request, head_too_large, body_too_large };
    explicit mock_request_reader(std::size_t max_body) : max_body_(max_body) {}
    void append(std::string_view bytes) { buffer_.append(bytes); }
    std::size_t buffered() const noexcept { return buffer_.size(); }
    /// `ready` takes the request off the front; `wants_continue` is told once a request.
    state next(mock_request& out);
    static constexpr std::size_t max_head = 64 * 1024;

private:
    state read_head();
    state read_body();
    state read_chunks();

    std::string buffer_;
    std::size_t max_body_;
    std::size_t scanned_ = 0;
    bool in_body_ = false;
    bool continue_told_ = false;
    bool chunked_ = false;
    std::size_t need_ = 0;
    mock_request request_;
};

/// `HTTP/1.1 <status> <reason>` and what every answer of the mock has, without the blank line.
std::string mock_head(int status, std::string_view content_type, bool keep_alive);

}  // namespace reagent::inline v0::testing_detail
