// A strict RFC 8259 parser of our own. simdjson's tokens were tried first: it refuses lone surrogates, ill-formed UTF-8 and numbers beyond
// double range before a caller can look at them, and reports no error offset, so every lenient rule here would have needed a second scanner.
// tests/fuzz/fuzz_json.cpp holds it to simdjson's verdict on everything else.
#include "json_duplicates.hpp"
#include "json_number.hpp"
#include "json_string.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/json.hpp>

#include <algorithm>
#include <charconv>

namespace reagent::inline v0 {
namespace {

constexpr std::size_t deepest = 512;
class parser {
public:
    parser(std::string_view text, json::parse_options o) : text_(text), max_depth_(std::min(o.max_depth, deepest)), unique_keys_(o.unique_keys) {}

    boost::system::result<json> run()
    {
        for (;;) {
            if (!read_value()) return failure_;
            // A finished value goes into its container; containers that close there are finished values themselves.
            for (;;) {
                if (opened_) break;
                if (stack_.empty()) {
                    skip_blank();
                    if (at_ != text_.size()) return errc::invalid_json;
                    return std::move(value_);
                }
                if (!store()) return failure_;
                if (!closed_) break;
            }
        }
    }
    std::size_t offset() const noexcept { return at_; }

private:
    // One open container; `key` is the member an object waits a value for.
    struct frame {
        explicit frame(bool is_object) : object(is_object) {}
        bool object;
        std::string key;
        json::array_type elements;
        json::object_type members;
    };

    bool fail(errc e) noexcept
    {
        failure_ = e;
        return false;
    }
    char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
    void skip_blank() noexcept
    {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) ++at_;
    }

    // Reads a scalar or an empty container into value_, or opens a container (opened_).
    bool read_value()
    {
        opened_ = false;
        skip_blank();
        switch (peek()) {
        case '{': return open(true);
        case '[': return open(false);
        case '"': {
            ++at_;
            std::string s;
            if (!base_detail::read_json_string(text_, at_, s)) return fail(errc::invalid_json);
            value_ = json(std::move(s));
            return true;
        }
        case 't': return literal("true", json(true));
        case 'f': return literal("false", json(false));
        case 'n': return literal("null", json());
        default: return read_number();
        }
    }

    bool literal(std::string_view word, json value)
    {
        for (const char c : word) {
            if (peek() != c) return fail(errc::invalid_json);
            ++at_;
        }
        value_ = std::move(value);
        return true;
    }

    bool read_number()
    {
        std::size_t stopped = 0;
        const std::string_view rest = text_.substr(at_);
        const std::size_t n = base_detail::scan_number(rest, stopped);
        at_ += stopped;
        if (n == 0) return fail(errc::invalid_json);
        const std::string_view token = rest.substr(0, n);
        std::int64_t small = 0;
        const auto [end, failure] = std::from_chars(token.data(), token.data() + n, small);
        // An integer of 64 bits prints as it was written, all but "-0"; everything else keeps its text.
        if (failure == std::errc() && end == token.data() + n && !(small == 0 && n > 1)) value_ = json(json::number(small));
        else value_ = json(json::number::from_text(std::string(token)));
        return true;
    }

    bool open(bool object)
    {
        if (stack_.size() >= max_depth_) return fail(errc::limit_exceeded);
        ++at_;
        skip_blank();
        if (peek() == (object ? '}' : ']')) {
            ++at_;
            value_ = object ? json::object() : json::array();
            return true;
        }
        stack_.emplace_back(object);
        opened_ = true;
        return !object || read_key();
    }

    bool read_key()
    {
        skip_blank();
        if (peek() != '"') return fail(errc::invalid_json);
        ++at_;
        std::string& key = stack_.back().key;
        key.clear();
        if (!base_detail::read_json_string(text_, at_, key)) return fail(errc::invalid_json);
        skip_blank();
        if (peek() != ':') return fail(errc::invalid_json);
        ++at_;
        return true;
    }

    // Puts value_ into the innermost container and reads what follows; closed_ when that ends the container, which is then value_.
    bool store()
    {
        frame& top = stack_.back();
        if (top.object) top.members.emplace_back(std::move(top.key), std::move(value_));
        else top.elements.push_back(std::move(value_));
        skip_blank();
        closed_ = false;
        if (peek() == ',') {
            ++at_;
            return !top.object || read_key();
        }
        if (peek() != (top.object ? '}' : ']')) return fail(errc::invalid_json);
        ++at_;
        closed_ = true;
        if (top.object) {
            const std::size_t written = top.members.size();
            base_detail::drop_duplicates(top.members, [](const std::string& a, const std::string& b) { return a.compare(b); });
            if (unique_keys_ && top.members.size() < written) return fail(errc::duplicate_key);
            value_ = json(std::move(top.members));
        } else value_ = json(std::move(top.elements));
        stack_.pop_back();
        return true;
    }

    std::string_view text_;
    std::size_t max_depth_;
    bool unique_keys_;
    std::size_t at_ = 0;
    std::vector<frame> stack_;
    json value_;
    bool opened_ = false, closed_ = false;
    boost::system::error_code failure_;
};

}  // namespace

boost::system::result<json> json::parse(std::string_view text)
{
    return parse(text, parse_options());
}

boost::system::result<json> json::parse(std::string_view text, parse_options options)
{
    std::size_t ignored = 0;
    return parse(text, options, ignored);
}

boost::system::result<json> json::parse(std::string_view text, parse_options options, std::size_t& error_offset)
{
    parser p(text, options);
    boost::system::result<json> r = p.run();
    error_offset = p.offset();
    return r;
}

json json::parse_or_throw(std::string_view text, std::string_view what)
{
    std::size_t offset = 0;
    boost::system::result<json> r = parse(text, parse_options(), offset);
    if (r) return std::move(*r);
    const bool deep = r.error() == errc::limit_exceeded;
    throw error(r.error(), std::string(what) + (deep ? " nests deeper than 512 levels at byte " : " is not JSON at byte ") + std::to_string(offset));
}

}  // namespace reagent::inline v0
