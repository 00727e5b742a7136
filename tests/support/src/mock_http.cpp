#include "mock_http.hpp"

#include "http_reason.hpp"

#include <algorithm>
#include <charconv>

namespace reagent::inline v0::testing_detail {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

std::string lowered(std::string_view s)
{
    std::string out(s);
    for (char& c : out) c = lower(c);
    return out;
}

std::string_view trimmed(std::string_view s)
{
    while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
    return s;
}

bool number(std::string_view text, int base, std::size_t& out)
{
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out, base);
    return ec == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

std::string_view mock_request::header(std::string_view lower_name) const
{
    for (const auto& [name, value] : headers) {
        if (name == lower_name) return value;
    }
    return {};
}

mock_request_reader::state mock_request_reader::read_head()
{
    // A stray line end between requests is let pass (RFC 9112 §2.2).
    std::size_t skip = 0;
    while (skip < buffer_.size() && (buffer_[skip] == '\r' || buffer_[skip] == '\n')) ++skip;
    if (skip > 0) {
        buffer_.erase(0, skip);
        scanned_ = 0;
    }
    const std::size_t end = buffer_.find("\r\n\r\n", scanned_ > 3 ? scanned_ - 3 : 0);
    scanned_ = buffer_.size();
    if (end == std::string::npos) return buffer_.size() > max_head ? state::head_too_large : state::need_more;
    if (end > max_head) return state::head_too_large;

    request_ = mock_request();
    const std::string_view head = std::string_view(buffer_).substr(0, end);
    std::size_t at = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, at);
    const std::size_t a = line.find(' '), b = line.rfind(' ');
    if (a == std::string_view::npos || b <= a || line.substr(b + 1, 7) != "HTTP/1.") return state::bad_request;
    request_.method = line.substr(0, a);
    request_.target = line.substr(a + 1, b - a - 1);
    while (at < head.size()) {
        const std::size_t start = at + 2;
        at = std::min(head.find("\r\n", start), head.size());
        const std::string_view field = head.substr(start, at - start);
        const std::size_t colon = field.find(':');
        if (colon == std::string_view::npos || colon == 0) return state::bad_request;
        request_.headers.emplace_back(lowered(field.substr(0, colon)), trimmed(field.substr(colon + 1)));
    }
    const std::string connection = lowered(request_.header("connection"));
    const bool http_10 = line.substr(b + 1) == "HTTP/1.0";
    request_.keep_alive = http_10 ? connection == "keep-alive" : connection != "close";
    chunked_ = lowered(request_.header("transfer-encoding")) == "chunked";
    need_ = 0;
    if (const std::string_view length = request_.header("content-length"); !chunked_ && !length.empty()) {
        if (!number(length, 10, need_)) return state::bad_request;
    }
    if (need_ > max_body_) return state::body_too_large;
    buffer_.erase(0, end + 4);
    scanned_ = 0;
    in_body_ = true;
    if (!continue_told_ && lowered(request_.header("expect")) == "100-continue" && buffer_.size() < need_) {
        continue_told_ = true;
        return state::wants_continue;
    }
    return state::ready;
}

mock_request_reader::state mock_request_reader::read_chunks()
{
    std::size_t at = 0;
    for (;;) {
        const std::size_t line = buffer_.find("\r\n", at);
        if (line == std::string::npos) break;
        std::size_t size = 0;
        const std::string_view text = std::string_view(buffer_).substr(at, line - at);
        if (!number(trimmed(text.substr(0, text.find(';'))), 16, size)) return state::bad_request;
        if (size > max_body_ || request_.body.size() + size > max_body_) return state::body_too_large;
        if (buffer_.size() < line + 2 + size + 2) break;
        request_.body.append(buffer_, line + 2, size);
        at = line + 2 + size + 2;
        if (size == 0) {
            buffer_.erase(0, at);
            return state::ready;
        }
    }
    buffer_.erase(0, at);
    return state::need_more;
}

mock_request_reader::state mock_request_reader::read_body()
{
    if (chunked_) return read_chunks();
    if (buffer_.size() < need_) return state::need_more;
    if (buffer_.size() == need_) {
        request_.body = std::move(buffer_);
        buffer_.clear();
    } else {
        request_.body = buffer_.substr(0, need_);
        buffer_.erase(0, need_);
    }
    return state::ready;
}

mock_request_reader::state mock_request_reader::next(mock_request& out)
{
    if (!in_body_) {
        const state head = read_head();
        if (head != state::ready) return head;
    }
    const state body = read_body();
    if (body == state::ready) {
        out = std::move(request_);
        in_body_ = false;
        continue_told_ = false;
    }
    return body;
}

std::string mock_head(int status, std::string_view content_type, bool keep_alive)
{
    std::string out = "HTTP/1.1 " + std::to_string(status) + ' ' + std::string(http_reason(status)) + "\r\nContent-Type: ";
    out += content_type;
    out += "\r\n";
    if (!keep_alive) out += "Connection: close\r\n";
    return out;
}

}  // namespace reagent::inline v0::testing_detail
