#include "fingerprint.hpp"

#include <cmath>

namespace reagent::inline v0::agent_detail {
namespace {

void append_number(std::string& out, const json::number& n)
{
    if (const auto i = n.as_int64()) out += std::to_string(*i);
    else if (const auto u = n.as_uint64()) out += std::to_string(*u);
    else if (const double d = n.as_double(); std::isfinite(d)) json::number(d).append_to(out);
    else n.append_to(out);
}

void append(std::string& out, const json& value)
{
    switch (value.type()) {
    case json::kind::number: append_number(out, value.as_number()); break;
    case json::kind::array: {
        out += '[';
        for (const json& element : value.as_array()) {
            append(out, element);
            out += ',';
        }
        out += ']';
        break;
    }
    case json::kind::object: {
        out += '{';
        for (const auto& [key, member] : value.as_object()) {
            append_json_string(out, key);
            out += ':';
            append(out, member);
            out += ',';
        }
        out += '}';
        break;
    }
    default: value.dump_to(out); break;
    }
}

}  // namespace

std::string failure_fingerprint(const tool_call& call)
{
    std::string out = call.name;
    out += ':';
    append(out, call.arguments);
    return out;
}

std::string call_fingerprint(const tool_call& call)
{
    return call.name + ':' + call.arguments.canonical();
}

}  // namespace reagent::inline v0::agent_detail
