#include <reagent/net/sse_parser.hpp>

#include <cstring>

namespace reagent::inline v0 {
namespace {

// Readers of JSON look up to this far behind a value (simdjson's padding).
constexpr std::size_t padding = 64;

std::size_t find(std::string_view text, char c, std::size_t from) noexcept
{
    const void* hit = from < text.size() ? std::memchr(text.data() + from, c, text.size() - from) : nullptr;
    return hit ? static_cast<std::size_t>(static_cast<const char*>(hit) - text.data()) : text.size();
}

void append_padded(std::string& to, std::string_view more)
{
    const std::size_t need = to.size() + more.size() + padding;
    if (to.capacity() < need) to.reserve(need < 2 * to.capacity() ? 2 * to.capacity() : need);
    to.append(more);
}

}  // namespace

sse_parser::sse_parser(std::size_t max_event) : max_event_(max_event) {}

void sse_parser::feed(std::string_view bytes) noexcept
{
    input_ = bytes;
    pos_ = 0;
    stale_ends_ = true;
}

// LF and CR are searched for separately and each search is remembered, so that a stream with only one of them is still scanned once.
std::size_t sse_parser::line_end() noexcept
{
    if (stale_ends_ || next_lf_ < pos_) {
        next_lf_ = find(input_, '\n', pos_);
        scanned_ += (next_lf_ < input_.size() ? next_lf_ + 1 : next_lf_) - pos_;
    }
    if (stale_ends_ || next_cr_ < pos_) {
        next_cr_ = find(input_, '\r', pos_);
        scanned_ += (next_cr_ < input_.size() ? next_cr_ + 1 : next_cr_) - pos_;
    }
    stale_ends_ = false;
    return next_lf_ < next_cr_ ? next_lf_ : next_cr_;
}

bool sse_parser::over_limit(std::size_t more) noexcept
{
    const std::size_t pending = data_owned_ ? data_.size() : data_view_.size();
    if (pending + line_.size() + more > max_event_) failed_ = true;
    return failed_;
}

bool sse_parser::next(sse_event& out)
{
    if (dispatched_) clear_event();
    while (!failed_ && pos_ < input_.size()) {
        if (last_cr_) {
            last_cr_ = false;
            if (input_[pos_] == '\n') {
                ++pos_;
                continue;
            }
        }
        const std::size_t end = line_end();
        const std::string_view piece = input_.substr(pos_, end - pos_);
        if (over_limit(piece.size())) break;
        pos_ = end;
        if (end == input_.size()) {
            append_padded(line_, piece);
            break;
        }
        last_cr_ = input_[pos_++] == '\r';
        bool blank = false;
        if (line_.empty()) {
            blank = take_line(piece, true);
        } else {
            append_padded(line_, piece);
            blank = take_line(line_, false);
            line_.clear();
        }
        if (blank) {
            if (have_data_) {
                dispatch(out);
                return true;
            }
            clear_event();
        }
    }
    keep_views();
    return false;
}

bool sse_parser::finish(sse_event& out)
{
    if (dispatched_) clear_event();
    if (failed_) return false;
    if (!line_.empty()) {
        take_line(line_, false);
        line_.clear();
    }
    if (!have_data_) return false;
    dispatch(out);
    return true;
}

// True for a blank line. `lasting`: the line is a view of the fed bytes, which outlive this call.
bool sse_parser::take_line(std::string_view line, bool lasting)
{
    if (first_line_) {
        first_line_ = false;
        if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    }
    if (line.empty()) return true;
    std::string_view value;
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
        value = line.substr(colon + 1);
        if (value.starts_with(' ')) value.remove_prefix(1);
        line = line.substr(0, colon);
    }
    if (line == "data") {
        add_data(value, lasting);
    } else if (line == "event") {
        type_owned_ = !lasting;
        if (lasting) type_view_ = value;
        else type_.assign(value);
    }
    return false;
}

void sse_parser::add_data(std::string_view value, bool lasting)
{
    if (!have_data_ && lasting) {
        data_view_ = value;
    } else {
        if (have_data_) {
            if (!data_owned_) append_padded(data_, data_view_);
            append_padded(data_, "\n");
        }
        append_padded(data_, value);
        data_owned_ = true;
    }
    have_data_ = true;
}

void sse_parser::dispatch(sse_event& out) noexcept
{
    out.data = data_owned_ ? std::string_view(data_) : data_view_;
    out.type = type_owned_ ? std::string_view(type_) : type_view_;
    dispatched_ = true;
}

void sse_parser::clear_event()
{
    constexpr std::size_t keep = 4096;  // a stream that once had a large event does not hold on to it
    if (data_.capacity() > keep) data_ = std::string();
    if (line_.empty() && line_.capacity() > keep) line_ = std::string();
    data_.clear();
    type_.clear();
    data_view_ = type_view_ = {};
    have_data_ = data_owned_ = type_owned_ = dispatched_ = false;
}

// The fed bytes may vanish now: what the pending event has as views is copied.
void sse_parser::keep_views()
{
    if (have_data_ && !data_owned_) {
        append_padded(data_, data_view_);
        data_owned_ = true;
    }
    if (!type_owned_ && !type_view_.empty()) {
        type_.assign(type_view_);
        type_owned_ = true;
    }
    data_view_ = type_view_ = {};
    input_ = {};
    pos_ = 0;
    stale_ends_ = true;
}

}  // namespace reagent::inline v0
