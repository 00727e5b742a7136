/// The JSON of the wires, read for a decoder: by simdjson where that keeps every bit, leniently where it does not. For decoders only, which include simdjson.h in
/// front of this: it takes seconds to compile, so it stands in no header and the decoders share a unit.
#pragma once
#include <reagent/base/json.hpp>
#include <reagent/model/answer_builder.hpp>

#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

namespace reagent::inline v0::model_detail {

/// One parser and one padded buffer for all streams of a codec. What `parse` answers lives until the next `parse`.
class wire_scratch {
public:
    static constexpr std::size_t smallest = 4096, largest_kept = 1024 * 1024, max_depth = 512;
    /// Nothing when simdjson refuses the text; the caller then reads it leniently.
    std::optional<simdjson::dom::element> parse(std::string_view text);

private:
    void shrink();

    std::optional<simdjson::dom::parser> parser_;
    std::unique_ptr<char[]> buffer_;
    std::size_t size_ = 0;
};

/// The name of a member. Compared with a literal its size decides first, and then one instruction or two, where a view would call `memcmp`.
class wire_key : public std::string_view {
public:
    explicit wire_key(std::string_view name) noexcept : std::string_view(name) {}
    template <std::size_t N>
    friend bool operator==(const wire_key& key, const char (&literal)[N]) noexcept
    {
        return key.size() == N - 1 && std::memcmp(key.data(), literal, N - 1) == 0;
    }
};

/// A value of simdjson's tree. Text is well-formed and numbers fit; what does not fit sends the whole text to `lenient_value`.
class wire_value {
public:
    /// Numbers may have lost their text: what is kept or shown as JSON must be read exactly.
    static constexpr bool exact = false;
    wire_value() = default;
    explicit wire_value(simdjson::dom::element e) noexcept : e_(e), there_(true) {}
    explicit operator bool() const noexcept { return there_ && !e_.is_null(); }
    bool is_object() const noexcept { return there_ && e_.is_object(); }
    bool is_array() const noexcept { return there_ && e_.is_array(); }
    bool is_string() const noexcept { return there_ && e_.is_string(); }
    bool is_true() const noexcept
    {
        bool b = false;
        return there_ && e_.get(b) == simdjson::SUCCESS && b;
    }
    std::string_view string() const noexcept
    {
        std::string_view s;
        return is_string() && e_.get(s) == simdjson::SUCCESS ? s : std::string_view();
    }
    std::optional<std::int64_t> integer() const noexcept
    {
        std::int64_t n = 0;
        if (!there_ || e_.get(n) != simdjson::SUCCESS) return std::nullopt;
        return n;
    }
    std::optional<double> number() const noexcept
    {
        double d = 0;
        if (!there_ || e_.get(d) != simdjson::SUCCESS) return std::nullopt;
        return d;
    }
    template <class F>
    void members(F&& f) const
    {
        simdjson::dom::object o;
        if (!is_object() || e_.get(o) != simdjson::SUCCESS) return;
        for (const auto field : o) f(wire_key(field.key), wire_value(field.value));
    }
    template <class F>
    void elements(F&& f) const
    {
        simdjson::dom::array a;
        if (!is_array() || e_.get(a) != simdjson::SUCCESS) return;
        for (const simdjson::dom::element v : a) f(wire_value(v));
    }
    /// Null when there is none.
    json to_json() const { return there_ ? json::parse(simdjson::minify(e_)).value() : json(); }

private:
    simdjson::dom::element e_;
    bool there_ = false;
};

/// The same face over a leniently read value: repaired text, numbers of any size and with their text.
class lenient_value {
public:
    static constexpr bool exact = true;
    lenient_value() = default;
    explicit lenient_value(const json& j) noexcept : j_(&j) {}
    explicit operator bool() const noexcept { return j_ != nullptr && !j_->is_null(); }
    bool is_object() const noexcept { return j_ != nullptr && j_->is_object(); }
    bool is_array() const noexcept { return j_ != nullptr && j_->is_array(); }
    bool is_string() const noexcept { return j_ != nullptr && j_->is_string(); }
    bool is_true() const noexcept { return j_ != nullptr && j_->is_bool() && j_->as_bool(); }
    std::string_view string() const noexcept { return is_string() ? std::string_view(j_->as_string()) : std::string_view(); }
    std::optional<std::int64_t> integer() const noexcept { return j_ == nullptr ? std::nullopt : j_->get_int64(); }
    std::optional<double> number() const noexcept { return j_ == nullptr ? std::nullopt : j_->get_double(); }
    template <class F>
    void members(F&& f) const
    {
        if (is_object())
            for (const auto& [k, v] : j_->as_object()) f(wire_key(k), lenient_value(v));
    }
    template <class F>
    void elements(F&& f) const
    {
        if (is_array())
            for (const json& v : j_->as_array()) f(lenient_value(v));
    }
    json to_json() const { return j_ == nullptr ? json() : *j_; }

private:
    const json* j_ = nullptr;
};

/// Hands the value of `text` to `take`, and what it answers to the caller: first as simdjson read it, of which `take` may answer nothing to get it exactly (some
/// number's text matters); then, or when simdjson refuses the text, leniently. `bad()` answers for text that is no JSON.
template <class Take, class Bad>
decode_state with_json(wire_scratch& scratch, std::string_view text, Take&& take, Bad&& bad)
{
    if (const auto root = scratch.parse(text))
        if (const std::optional<decode_state> answered = take(wire_value(*root))) return *answered;
    const auto lenient = json::parse(text);
    if (!lenient) return bad();
    return take(lenient_value(*lenient)).value_or(decode_state::more);
}

/// Only numbers count as a usage signal; negatives, NaN and text are absent.
template <class V>
std::optional<std::uint64_t> token_count(const V& v)
{
    const std::optional<double> d = v.number();
    if (!d || !(*d >= 0) || *d > 9e15) return std::nullopt;
    return static_cast<std::uint64_t>(*d);
}

/// Without ASCII white space at either end.
inline std::string_view trimmed(std::string_view t) noexcept
{
    const std::size_t first = t.find_first_not_of(" \t\r\n\f\v");
    return first == std::string_view::npos ? std::string_view() : t.substr(first, t.find_last_not_of(" \t\r\n\f\v") - first + 1);
}

}  // namespace reagent::inline v0::model_detail
