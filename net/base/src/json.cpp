#include <reagent/base/json.hpp>
#include <reagent/base/utf8.hpp>

#include <algorithm>

namespace reagent::inline v0 {
namespace {

const json null_value;

// Order of UTF-16 code units of well-formed UTF-8: as bytes, but the characters above U+FFFF (lead F0…) come before U+E000 to U+FFFF
// (leads EE, EF), since they are written with surrogates.
bool utf16_less(std::string_view a, std::string_view b) noexcept
{
    const std::size_t n = std::min(a.size(), b.size());
    std::size_t i = 0;
    while (i < n && a[i] == b[i]) ++i;
    if (i == n) return a.size() < b.size();
    const auto x = static_cast<unsigned char>(a[i]), y = static_cast<unsigned char>(b[i]);
    if (x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0)) return x >= 0xF0;
    return x < y;
}

enum class style { compact, pretty, canonical };

class writer {
public:
    writer(std::string& out, style s) : out_(out), style_(s) {}

    void value(const json& v, std::size_t depth)
    {
        switch (v.type()) {
        case json::kind::null: out_.append("null"); return;
        case json::kind::boolean: out_.append(v.as_bool() ? "true" : "false"); return;
        case json::kind::number:
            if (style_ == style::canonical) v.as_number().append_canonical_to(out_);
            else v.as_number().append_to(out_);
            return;
        case json::kind::string: append_json_string(out_, v.as_string()); return;
        case json::kind::array: array(v.as_array(), depth); return;
        case json::kind::object: object(v.as_object(), depth); return;
        }
    }

private:
    void line(std::size_t depth)
    {
        if (style_ != style::pretty) return;
        out_.push_back('\n');
        out_.append(2 * depth, ' ');
    }

    void array(const json::array_type& elements, std::size_t depth)
    {
        out_.push_back('[');
        bool first = true;
        for (const json& e : elements) {
            if (!first) out_.push_back(',');
            first = false;
            line(depth + 1);
            value(e, depth + 1);
        }
        if (!first) line(depth);
        out_.push_back(']');
    }

    void object(const json::object_type& members, std::size_t depth)
    {
        out_.push_back('{');
        if (style_ == style::canonical) {
            std::vector<std::pair<std::string, const json*>> order;
            order.reserve(members.size());
            for (const json::member& m : members) order.emplace_back(repair_utf8(m.first), &m.second);
            std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return utf16_less(a.first, b.first); });
            bool first = true;
            for (const auto& [key, v] : order) put(first, key, *v, depth);
        } else {
            bool first = true;
            for (const json::member& m : members) put(first, m.first, m.second, depth);
            if (!first) line(depth);
        }
        out_.push_back('}');
    }

    void put(bool& first, const std::string& key, const json& v, std::size_t depth)
    {
        if (!first) out_.push_back(',');
        first = false;
        line(depth + 1);
        append_json_string(out_, key);
        out_.append(style_ == style::pretty ? ": " : ":");
        value(v, depth + 1);
    }

    std::string& out_;
    style style_;
};

std::string written(const json& v, style s)
{
    std::string out;
    writer(out, s).value(v, 0);
    return out;
}

const json* member_of(const json::object_type& members, std::string_view key) noexcept
{
    for (const json::member& m : members) {
        if (m.first == key) return &m.second;
    }
    return nullptr;
}

bool same_members(const json::object_type& a, const json::object_type& b) noexcept
{
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        // Equal objects mostly have equal order.
        const json* other = b[i].first == a[i].first ? &b[i].second : member_of(b, a[i].first);
        if (!other || !(*other == a[i].second)) return false;
    }
    return true;
}

}  // namespace

std::string_view json::type_name() const noexcept
{
    switch (type()) {
    case kind::null: return "null";
    case kind::boolean: return "boolean";
    case kind::number: return "number";
    case kind::string: return "string";
    case kind::array: return "array";
    case kind::object: return "object";
    }
    return "null";
}

std::optional<bool> json::get_bool() const noexcept
{
    const bool* v = std::get_if<bool>(&value_);
    return v ? std::optional<bool>(*v) : std::nullopt;
}

std::optional<double> json::get_double() const noexcept
{
    const number* n = std::get_if<number>(&value_);
    return n ? std::optional<double>(n->as_double()) : std::nullopt;
}

std::optional<std::int64_t> json::get_int64() const noexcept
{
    const number* n = std::get_if<number>(&value_);
    return n ? n->as_int64() : std::nullopt;
}

std::optional<std::uint64_t> json::get_uint64() const noexcept
{
    const number* n = std::get_if<number>(&value_);
    return n ? n->as_uint64() : std::nullopt;
}

const json* json::find(std::string_view key) const noexcept
{
    const object_type* o = std::get_if<object_type>(&value_);
    return o ? member_of(*o, key) : nullptr;
}

json* json::find(std::string_view key) noexcept
{
    return const_cast<json*>(std::as_const(*this).find(key));
}

const json& json::operator[](std::string_view key) const noexcept
{
    const json* v = find(key);
    return v ? *v : null_value;
}

const json& json::operator[](std::size_t index) const noexcept
{
    const array_type* a = std::get_if<array_type>(&value_);
    return a && index < a->size() ? (*a)[index] : null_value;
}

std::size_t json::size() const noexcept
{
    if (const array_type* a = std::get_if<array_type>(&value_)) return a->size();
    if (const object_type* o = std::get_if<object_type>(&value_)) return o->size();
    return 0;
}

json& json::set(std::string key, json value) &
{
    if (is_null()) value_ = object_type();
    if (json* present = find(key)) *present = std::move(value);
    else as_object().emplace_back(std::move(key), std::move(value));
    return *this;
}

bool json::erase(std::string_view key)
{
    object_type* o = std::get_if<object_type>(&value_);
    if (!o) return false;
    const auto at = std::find_if(o->begin(), o->end(), [&](const member& m) { return m.first == key; });
    if (at == o->end()) return false;
    o->erase(at);
    return true;
}

json& json::push_back(json value) &
{
    if (is_null()) value_ = array_type();
    as_array().push_back(std::move(value));
    return *this;
}

std::string json::dump() const
{
    return written(*this, style::compact);
}
void json::dump_to(std::string& out) const
{
    writer(out, style::compact).value(*this, 0);
}
std::string json::dump_pretty() const
{
    return written(*this, style::pretty);
}
std::string json::canonical() const
{
    return written(*this, style::canonical);
}

bool operator==(const json& a, const json& b) noexcept
{
    if (a.type() != b.type()) return false;
    switch (a.type()) {
    case json::kind::null: return true;
    case json::kind::boolean: return a.as_bool() == b.as_bool();
    case json::kind::number: return a.as_number() == b.as_number();
    case json::kind::string: return a.as_string() == b.as_string();
    case json::kind::array: return a.as_array() == b.as_array();
    case json::kind::object: return same_members(a.as_object(), b.as_object());
    }
    return false;
}

}  // namespace reagent::inline v0
