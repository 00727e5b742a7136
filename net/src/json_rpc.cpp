#include <reagent/net/json_rpc.hpp>

#include <reagent/base/untrusted_text.hpp>

#include <utility>

namespace reagent::inline v0 {
namespace {

rpc_message malformed(std::string why)
{
    rpc_message m;
    m.problem = std::move(why);
    return m;
}

rpc_error read_error(const json& e)
{
    rpc_error out;
    out.code = e["code"].get_int64().value_or(0);
    const std::string* text = e["message"].get_string();
    out.message = text ? *text : e.dump();
    out.data = e["data"];
    return out;
}

std::string start()
{
    return R"({"jsonrpc":"2.0")";
}

void add(std::string& out, std::string_view key, const json& value)
{
    out += ",\"";
    out += key;
    out += "\":";
    value.dump_to(out);
}

void add_method(std::string& out, std::string_view method, const json& params)
{
    out += ",\"method\":";
    append_json_string(out, method);
    if (!params.is_null()) add(out, "params", params);
    out += '}';
}

}  // namespace

rpc_fault::rpc_fault(rpc_error e) : error(errc::provider_failed, untrusted_text(e.message)), reply_(std::move(e)) {}

rpc_message read_rpc(json message)
{
    if (!message.is_object()) return malformed("it is " + std::string(message.type_name()) + ", not an object");
    const std::string* version = message["jsonrpc"].get_string();
    if (!version || *version != "2.0") return malformed("\"jsonrpc\" is not \"2.0\"");
    json* id = message.find("id");
    json* method = message.find("method");
    json* result = message.find("result");
    json* error = message.find("error");
    rpc_message out;
    if (method) {
        if (!method->is_string()) return malformed("\"method\" is not a string");
        if (id && !id->is_string() && !id->is_number()) return malformed("\"id\" is neither a string nor a number");
        if (json* params = message.find("params")) {
            if (!params->is_object()) return malformed("\"params\" is not an object");
            out.params = std::move(*params);
        }
        out.kind = id ? rpc_kind::request : rpc_kind::notification;
        out.method = std::move(method->as_string());
        if (id) out.id = std::move(*id);
        return out;
    }
    if (!id) return malformed("there is neither \"method\" nor \"id\"");
    if (!id->is_string() && !id->is_number() && !(id->is_null() && error)) return malformed("\"id\" is neither a string nor a number");
    if ((result != nullptr) == (error != nullptr))
        return malformed(result ? "there are \"result\" and \"error\"" : "there is neither \"result\" nor \"error\"");
    out.kind = rpc_kind::response;
    out.id = std::move(*id);
    out.failed = error != nullptr;
    if (error) out.error = read_error(*error);
    else out.result = std::move(*result);
    return out;
}

std::string rpc_request_text(const json& id, std::string_view method, const json& params)
{
    std::string out = start();
    add(out, "id", id);
    add_method(out, method, params);
    return out;
}

std::string rpc_notification_text(std::string_view method, const json& params)
{
    std::string out = start();
    add_method(out, method, params);
    return out;
}

std::string rpc_result_text(const json& id, const json& result)
{
    std::string out = start();
    add(out, "id", id);
    add(out, "result", result);
    return out += '}';
}

std::string rpc_error_text(const json& id, const rpc_error& error)
{
    json body = json::object();
    body.set("code", error.code).set("message", error.message);
    if (!error.data.is_null()) body.set("data", error.data);
    std::string out = start();
    add(out, "id", id);
    add(out, "error", body);
    return out += '}';
}

}  // namespace reagent::inline v0
