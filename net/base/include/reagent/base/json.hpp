#pragma once
#include <boost/system/result.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace reagent::inline v0 {

/// A JSON value: object members keep their order, numbers keep their source text unless computed here.
/// Equality compares numbers by their exact decimal value and objects regardless of order.
/// Distinct values are thread safe; a shared const value may be read from any thread.
class json {
public:
    enum class kind : std::uint8_t { null, boolean, number, string, array, object };
    using array_type = std::vector<json>;
    using member = std::pair<std::string, json>;
    using object_type = std::vector<member>;

    /// A number: its exact text, or the value it was computed as.
    class number {
    public:
        number() = default;
        explicit number(std::int64_t v) noexcept : form_(form::int64), i_(v) {}
        explicit number(std::uint64_t v) noexcept : form_(form::uint64), u_(v) {}
        explicit number(double v) noexcept : form_(form::real), d_(v) {}
        /// `text` must be a JSON number; it is kept to the letter.
        static number from_text(std::string text);
        /// The JSON text: the source text, or the shortest that reads back equal. Infinities and NaN print `null`.
        void append_to(std::string& out) const;
        std::string text() const;
        double as_double() const noexcept;
        /// The value when it is integral and fits (`3.0` and `3e0` are), else nothing.
        std::optional<std::int64_t> as_int64() const noexcept;
        std::optional<std::uint64_t> as_uint64() const noexcept;
        /// Text that depends on the value alone: `1`, `1.0` and `10e-1` print `1`, `-0` prints `0`. Integers above 40 digits print in scientific form.
        void append_canonical_to(std::string& out) const;
        friend bool operator==(const number& a, const number& b) noexcept;

    private:
        enum class form : std::uint8_t { int64, uint64, real, text };
        form form_ = form::int64;
        union {
            std::int64_t i_ = 0;
            std::uint64_t u_;
            double d_;
        };
        std::string text_;
    };

    json() noexcept = default;
    json(std::nullptr_t) noexcept {}
    /// A template, so that no pointer becomes a boolean.
    template <std::same_as<bool> T>
    json(T v) noexcept : value_(v)
    {}
    template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>) json(T v)
    noexcept
        : value_([v] {
              if constexpr (std::unsigned_integral<T>) return number(static_cast<std::uint64_t>(v));
              else return number(static_cast<std::int64_t>(v));
          }())
    {}
    json(double v) noexcept : value_(number(v)) {}
    json(number v) noexcept : value_(std::move(v)) {}
    json(std::string v) noexcept : value_(std::move(v)) {}
    json(std::string_view v) : value_(std::string(v)) {}
    json(const char* v) : value_(std::string(v)) {}
    json(array_type v) noexcept : value_(std::move(v)) {}
    json(object_type v) noexcept : value_(std::move(v)) {}

    static json object() { return json(object_type()); }
    static json array() { return json(array_type()); }

    kind type() const noexcept { return static_cast<kind>(value_.index()); }
    bool is_null() const noexcept { return type() == kind::null; }
    bool is_bool() const noexcept { return type() == kind::boolean; }
    bool is_number() const noexcept { return type() == kind::number; }
    bool is_string() const noexcept { return type() == kind::string; }
    bool is_array() const noexcept { return type() == kind::array; }
    bool is_object() const noexcept { return type() == kind::object; }
    /// `null`, `boolean`, `number`, `string`, `array` or `object`.
    std::string_view type_name() const noexcept;

    /// Precondition: the value is of that kind.
    bool as_bool() const { return std::get<bool>(value_); }
    const number& as_number() const { return std::get<number>(value_); }
    const std::string& as_string() const { return std::get<std::string>(value_); }
    std::string& as_string() { return std::get<std::string>(value_); }
    const array_type& as_array() const { return std::get<array_type>(value_); }
    array_type& as_array() { return std::get<array_type>(value_); }
    const object_type& as_object() const { return std::get<object_type>(value_); }
    object_type& as_object() { return std::get<object_type>(value_); }

    /// The value when the kind fits, else nothing: no conversion between kinds.
    std::optional<bool> get_bool() const noexcept;
    std::optional<double> get_double() const noexcept;
    std::optional<std::int64_t> get_int64() const noexcept;
    std::optional<std::uint64_t> get_uint64() const noexcept;
    const std::string* get_string() const noexcept { return std::get_if<std::string>(&value_); }

    /// The member of an object, null pointer when absent or when this is no object.
    const json* find(std::string_view key) const noexcept;
    json* find(std::string_view key) noexcept;
    /// The member, or a null value when absent; never inserts.
    const json& operator[](std::string_view key) const noexcept;
    const json& operator[](std::size_t index) const noexcept;
    /// Elements of an array or members of an object, else 0.
    std::size_t size() const noexcept;
    bool empty() const noexcept { return size() == 0; }

    /// Sets or replaces a member (its first position is kept). A null value becomes an object first. Linear in the number of members.
    json& set(std::string key, json value) &;
    json&& set(std::string key, json value) && { return std::move(set(std::move(key), std::move(value))); }
    bool erase(std::string_view key);
    /// Appends to an array. A null value becomes an array first.
    json& push_back(json value) &;
    json&& push_back(json value) && { return std::move(push_back(std::move(value))); }

    struct parse_options {
        parse_options() noexcept = default;
        std::size_t max_depth = 512;  ///< nested arrays and objects; larger values count as 512
        bool unique_keys = false;     ///< a key that stands twice is `errc::duplicate_key`, at the end of its object
    };
    /// Parses exactly one value and nothing after it but white space. Ill-formed UTF-8 becomes U+FFFD per maximal subpart, lone surrogate
    /// escapes become U+FFFD, of duplicate keys the last value wins at the first position. Errors: `errc::invalid_json`, `errc::limit_exceeded`
    /// for depth, `errc::duplicate_key` where asked. Never throws but for memory.
    static boost::system::result<json> parse(std::string_view text);
    static boost::system::result<json> parse(std::string_view text, parse_options options);
    /// As `parse`, telling the offset of the first byte that cannot go on a JSON text; the size of the text when it ends too early.
    static boost::system::result<json> parse(std::string_view text, parse_options options, std::size_t& error_offset);
    /// Parses or throws `error(errc::invalid_json)` whose message names `what` and the byte offset.
    static json parse_or_throw(std::string_view text, std::string_view what);

    /// Compact JSON text; strings are repaired to well-formed UTF-8, non-ASCII stays literal.
    std::string dump() const;
    void dump_to(std::string& out) const;
    /// Two-space indented text for people.
    std::string dump_pretty() const;
    /// Compact text with keys sorted by UTF-16 code unit and integral numbers printed as integers: equal values, equal text.
    std::string canonical() const;

    friend bool operator==(const json& a, const json& b) noexcept;

private:
    std::variant<std::nullptr_t, bool, number, std::string, array_type, object_type> value_;
};

/// Appends `text` as a JSON string with its quotes; ill-formed UTF-8 is repaired on the way.
void append_json_string(std::string& out, std::string_view text);

}  // namespace reagent::inline v0
