// reagent::json against simdjson: the same verdict and the same values on everything where the two are meant to agree. They are not meant to
// agree on ill-formed UTF-8 and lone surrogate escapes (repaired by us, refused by simdjson), on numbers beyond 64 bits or double range (kept
// as text by us) and below depth 512. Whatever was read must also survive being written and read again.
#include <reagent/base/error.hpp>
#include <reagent/base/json.hpp>
#include <reagent/base/utf8.hpp>

#include <simdjson.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace {

using reagent::json;

void require(bool ok)
{
    if (!ok) std::abort();
}

bool same(const json& ours, const simdjson::dom::element& theirs);

bool same_object(const json& ours, const simdjson::dom::object& theirs)
{
    std::map<std::string_view, simdjson::dom::element> last;
    for (const simdjson::dom::key_value_pair field : theirs) last[field.key] = field.value;
    if (!ours.is_object() || ours.size() != last.size()) return false;
    for (const json::member& m : ours.as_object()) {
        const auto at = last.find(m.first);
        if (at == last.end() || !same(m.second, at->second)) return false;
    }
    return true;
}

bool same_array(const json& ours, const simdjson::dom::array& theirs)
{
    if (!ours.is_array() || ours.size() != theirs.size()) return false;
    std::size_t i = 0;
    for (const simdjson::dom::element e : theirs) {
        if (!same(ours[i++], e)) return false;
    }
    return true;
}

bool same(const json& ours, const simdjson::dom::element& theirs)
{
    using kind = simdjson::dom::element_type;
    switch (theirs.type()) {
    case kind::ARRAY: return same_array(ours, theirs.get_array().value_unsafe());
    case kind::OBJECT: return same_object(ours, theirs.get_object().value_unsafe());
    case kind::INT64: return ours.get_int64() == theirs.get_int64().value_unsafe();
    case kind::UINT64: return ours.get_uint64() == theirs.get_uint64().value_unsafe();
    case kind::DOUBLE: return ours.get_double() == theirs.get_double().value_unsafe();
    case kind::STRING: return ours.is_string() && ours.as_string() == theirs.get_string().value_unsafe();
    case kind::BOOL: return ours.get_bool() == theirs.get_bool().value_unsafe();
    case kind::NULL_VALUE: return ours.is_null();
    }
    return false;
}

bool has_surrogate_escape(std::string_view text)
{
    for (std::size_t i = 0; i + 3 < text.size(); ++i) {
        if (text[i] == '\\' && text[i + 1] == 'u' && (text[i + 2] | 0x20) == 'd' && (text[i + 3] >= '8')) return true;
    }
    return false;
}

bool has_wide_number(std::string_view text)
{
    std::size_t run = 0;
    for (const char c : text) {
        run = c >= '0' && c <= '9' ? run + 1 : 0;
        if (run >= 19 || c == 'e' || c == 'E') return true;
    }
    return false;
}

// A number computed from one that was read equals it, prints and reads back.
void computed_agree(const json& v)
{
    if (v.is_array()) {
        for (const json& e : v.as_array()) computed_agree(e);
    } else if (v.is_object()) {
        for (const json::member& m : v.as_object()) computed_agree(m.second);
    }
    if (!v.is_number()) return;
    if (const std::optional<std::int64_t> i = v.get_int64()) require(json(*i) == v && json(*i).canonical() == v.canonical());
    if (const std::optional<std::uint64_t> u = v.get_uint64())
        require(json(*u) == v && json(*u).get_int64() == v.get_int64() && json(*u).dump() == std::to_string(*u));
    const double d = *v.get_double();
    const json real(d);
    require(std::isfinite(d) ? json::parse(real.dump())->get_double() == d && *json::parse(real.canonical()) == real : real.dump() == "null");
    if (const std::optional<std::int64_t> i = real.get_int64()) require(static_cast<double>(*i) == d && json(*i).get_uint64() == real.get_uint64());
}

void survives(const json& v)
{
    computed_agree(v);
    const std::string text = v.dump();
    require(reagent::is_utf8(text));
    const boost::system::result<json> again = json::parse(text);
    require(again.has_value() && *again == v && again->dump() == text);
    const boost::system::result<json> pretty = json::parse(v.dump_pretty());
    require(pretty.has_value() && pretty->dump() == text);
    const std::string canonical = v.canonical();
    const boost::system::result<json> sorted = json::parse(canonical);
    require(sorted.has_value() && *sorted == v && sorted->canonical() == canonical);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    std::size_t offset = 0;
    const boost::system::result<json> ours = json::parse(text, {}, offset);
    require(offset <= size);
    if (ours) survives(*ours);
    else if (ours.error() == reagent::errc::limit_exceeded) return 0;

    static simdjson::dom::parser parser;
    const simdjson::padded_string padded(text);
    simdjson::dom::element theirs;
    const simdjson::error_code verdict = parser.parse(padded).get(theirs);
    if (verdict == simdjson::SUCCESS) {
        require(ours.has_value());
        require(same(*ours, theirs));
    } else if (ours) {
        const bool number = verdict == simdjson::NUMBER_ERROR && has_wide_number(text);
        const bool string = verdict == simdjson::STRING_ERROR && has_surrogate_escape(text);
        require(number || string || !reagent::is_utf8(text));
    }
    return 0;
}
