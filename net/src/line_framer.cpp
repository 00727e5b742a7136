#include <reagent/net/line_framer.hpp>

#include <algorithm>
#include <cstring>

namespace reagent::inline v0 {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
// A buffer that one long line made larger than this is given back.
constexpr std::size_t lasting_capacity = 64 * 1024;

}  // namespace

void line_framer::feed(std::string_view bytes) noexcept
{
    input_ = bytes;
}

void line_framer::forget_line()
{
    if (kept_.capacity() > lasting_capacity) kept_ = std::string();
    else kept_.clear();
    used_kept_ = false;
}

/// False for a line that is skipped.
bool line_framer::accept(std::string_view line, framed_line& out) const noexcept
{
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.too_long = line.size() > max_line_;
    if (line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
    out.text = out.too_long ? std::string_view() : line;
    return out.too_long || line.find_first_not_of(" \t\r") != std::string_view::npos;
}

bool line_framer::next(framed_line& out)
{
    if (used_kept_) forget_line();
    while (!input_.empty()) {
        const void* end = std::memchr(input_.data(), '\n', input_.size());
        if (!end) {
            scanned_ += input_.size();
            const std::string_view rest = input_;
            input_ = {};
            if (skipping_) return false;
            // One byte over the limit may be the CR of the line's end.
            const std::size_t size = kept_.size() + rest.size();
            if (size > max_line_ + 1 || (size == max_line_ + 1 && rest.back() != '\r')) {
                forget_line();
                skipping_ = true;
                out.text = {};
                out.too_long = true;
                out.number = ends_ + 1;
                return true;
            }
            kept_.append(rest);
            return false;
        }
        const auto size = static_cast<std::size_t>(static_cast<const char*>(end) - input_.data());
        scanned_ += size + 1;
        out.number = ++ends_;
        std::string_view line = input_.substr(0, size);
        input_.remove_prefix(size + 1);
        if (skipping_) {
            skipping_ = false;
            continue;
        }
        if (!kept_.empty()) {
            // No more of it than tells that it is too long.
            kept_.append(line.substr(0, max_line_ + 2 - std::min(kept_.size(), max_line_ + 2)));
            line = kept_;
            used_kept_ = true;
        }
        if (accept(line, out)) return true;
        if (used_kept_) forget_line();
    }
    return false;
}

bool line_framer::finish(framed_line& out)
{
    if (used_kept_) forget_line();
    skipping_ = false;
    if (kept_.empty()) return false;
    used_kept_ = true;
    out.number = ends_ + 1;
    return accept(kept_, out);
}

}  // namespace reagent::inline v0
