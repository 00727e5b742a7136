#pragma once
#include <reagent/base/json.hpp>
#include <reagent/net/line_framer.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace reagent::inline v0 {

enum class ndjson_kind : unsigned char {
    value,     ///< `value` holds it
    not_json,  ///< `text` is the line
    too_long,  ///< the line passed the limit and is skipped
};

class ndjson_item {
public:
    ndjson_kind kind = ndjson_kind::value;
    json value;
    std::string_view text;
    std::uint64_t line = 0;  ///< its number from 1, blank ones counted
};

/// JSON values, one a line (see `line_framer`), any cut of the input. No I/O. What is no JSON is told, counted and passed over. Use as `line_framer`.
class ndjson_reader {
public:
    explicit ndjson_reader(std::size_t max_line = line_framer::default_max_line) noexcept : framer_(max_line) {}
    void feed(std::string_view bytes) noexcept { framer_.feed(bytes); }
    bool next(ndjson_item& out);
    bool finish(ndjson_item& out);

    std::uint64_t values() const noexcept { return values_; }
    std::uint64_t not_json() const noexcept { return not_json_; }
    std::uint64_t too_long() const noexcept { return too_long_; }
    std::size_t buffered() const noexcept { return framer_.buffered(); }

private:
    void take(const framed_line& line, ndjson_item& out);
    line_framer framer_;
    std::uint64_t values_ = 0, not_json_ = 0, too_long_ = 0;
};

}  // namespace reagent::inline v0
