#include <reagent/base/ascii.hpp>
#include <reagent/base/base64.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/net/content_decoder.hpp>
#include <reagent/providers/response_decoder.hpp>
#include <reagent/providers/wire_cases.hpp>
#include <reagent/providers/wires.hpp>

#include <charconv>

namespace reagent::inline v0 {

namespace {

/// A line that is not a case.
class usage_fault : public error {
public:
    explicit usage_fault(std::string message) : error(errc::invalid_argument, std::move(message)) {}
};

class split_options {
public:
    explicit split_options(const json& all)
    {
        if (!all.is_null() && !all.is_object()) throw usage_fault("options must be an object");
        if (!all.is_object()) return;
        for (const auto& [key, value] : all.as_object()) {
            if (key == "tools") tools = value;
            else if (key == "toolChoice") call.set(key, value);
            else if (key == "stream") stream = value.is_bool() && value.as_bool();
            else provider.set(key, value);
        }
    }
    json provider = json::object(), call = json::object(), tools;
    bool stream = false;
};

tool_list tools_from(const json& list)
{
    if (list.is_null() || list.empty()) return {};
    if (!list.is_array()) throw usage_fault("tools must be an array");
    auto out = std::make_shared<std::vector<tool_schema>>();
    for (const json& t : list.as_array()) {
        const std::string* name = t["name"].get_string();
        const std::string* description = t["description"].get_string();
        if (name == nullptr || name->empty()) throw usage_fault("tools[" + std::to_string(out->size()) + "].name must be a non-empty string");
        out->emplace_back(*name, description == nullptr ? std::string() : *description, t["parameters"]);
    }
    return out;
}

const wire_entry& wanted_wire(const json& in)
{
    const std::string* name = in["provider"].get_string();
    if (name == nullptr) throw usage_fault("provider must be a string; known are " + wire_names());
    const wire_entry* known = find_wire(*name);
    if (known == nullptr) throw usage_fault("unknown provider " + untrusted_text(*name, 40) + "; known are " + wire_names());
    return *known;
}

std::vector<std::string> segments_of(const json& in)
{
    std::vector<std::string> out;
    const json& plain = in["segments"];
    const json& coded = in["segments_b64"];
    const json& list = plain.is_null() ? coded : plain;
    if (!list.is_array()) throw usage_fault("segments or segments_b64 must be an array of strings");
    for (const json& s : list.as_array()) {
        const std::string* text = s.get_string();
        if (text == nullptr) throw usage_fault("a segment must be a string");
        if (plain.is_null()) {
            auto bytes = base64_decode(*text);
            if (!bytes) throw usage_fault("a segment is not base64");
            out.push_back(std::move(*bytes));
        } else {
            out.push_back(*text);
        }
    }
    return out;
}

/// Whether the framing that the headers announce was complete when the connection ended as `end` says.
body_end how_it_ended(std::string_view end, const http_fields& fields, std::size_t received)
{
    if (end == "chunked-end") return body_end::complete;
    std::uint64_t length = 0;
    const std::string_view text = fields.get("content-length");
    const bool announced = !text.empty() && std::from_chars(text.data(), text.data() + text.size(), length).ec == std::errc();
    const bool chunked = fields.contains("transfer-encoding");
    if (announced && !chunked) return received >= length ? body_end::complete : body_end::aborted;
    if (end == "eof" && !chunked) return body_end::complete;
    if (end == "eof" || end == "reset") return body_end::aborted;
    throw usage_fault("end must be eof, reset or chunked-end");
}

json decode_one(const wire_entry& provider, const json& in)
{
    const split_options options(in["options"]);
    const std::vector<std::string> segments = segments_of(in);
    const auto status = in["status"].get_uint64();
    if (!status || *status < 100 || *status > 999) throw usage_fault("status must be a number between 100 and 999");
    http_fields fields;
    if (in["headers"].is_object()) {
        for (const auto& [name, value] : in["headers"].as_object()) {
            if (!value.is_string()) throw usage_fault("header " + untrusted_text(name, 40) + " must be a string");
            fields.add(name, value.as_string());
        }
    }
    const std::string end = in["end"].is_string() ? in["end"].as_string() : "eof";

    const configured_wire configured = provider.configure(options.provider);
    const wire_codec& codec = *configured.codec;
    generate_request request(transcript(), tools_from(options.tools));
    request.options = generate_options::from_json(options.call, codec.component());
    request.options.stream = in["stream"].is_bool() && in["stream"].as_bool();
    const call_plan plan = codec.plan(request);
    const thinking_ladder ladder = codec.ladder(plan, std::nullopt);

    response_decoder decoder(codec, request.tools, request.options.stream, static_cast<unsigned>(*status), fields, std::chrono::system_clock::now(),
                             configured.call.limits);
    auto coding = content_decoder::make(fields.get("content-encoding"));
    if (!coding && decoder.state() == decode_state::more)
        decoder.broken(error(coding.error(), "content coding " + untrusted_text(fields.get("content-encoding"), 40) + " is not supported"), nullptr);
    std::size_t received = 0;
    std::string plain;
    for (const std::string& s : segments) {
        if (decoder.state() != decode_state::more) break;
        received += s.size();
        plain.clear();
        const auto fed = coding->feed(s, plain);
        if (!fed) {
            decoder.broken(error(fed.error(), "the coded body is corrupt"), nullptr);
            break;
        }
        decoder.feed(plain, nullptr);
    }
    if (decoder.state() == decode_state::more) {
        const body_end how = how_it_ended(end, fields, received);
        decoder.end(coding->ended() ? how : body_end::aborted, nullptr);  // framing that ends before the coding does is a cut
    }
    if (decoder.state() == decode_state::failed) throw decoder.answer().take_failure();
    const thinking_signal seen = decoder.answer().thinking_seen();
    generate_result result = decoder.take_result();
    result.thinking = ladder.accepted(seen);
    return json::object().set("result", result.to_json());
}

json encode_one(const wire_entry& provider, const json& in)
{
    const split_options options(in["options"]);
    const configured_wire configured = provider.configure(options.provider);
    const wire_codec& codec = *configured.codec;
    generate_request request(transcript_from_json(in["messages"]), tools_from(in["tools"]));
    request.options = generate_options::from_json(in["call"], codec.component());
    request.options.stream = options.stream;
    const call_plan plan = codec.plan(request);
    const thinking_ladder ladder = codec.ladder(plan, std::nullopt);
    std::string storage;
    const wire_request wire = codec.encode(request, plan, true, ladder.members(), storage);
    json headers = json::object();
    for (std::string_view rest = wire.header_lines; !rest.empty();) {
        const std::size_t end = rest.find("\r\n"), colon = rest.find(": ");
        std::string name = to_lower(rest.substr(0, colon));
        headers.set(std::move(name), rest.substr(colon + 2, end - colon - 2));
        rest.remove_prefix(end + 2);
    }
    return json::object()
        .set("method", wire.method)
        .set("url", wire.target->text())
        .set("headers", std::move(headers))
        .set("body", json::parse_or_throw(wire.body, "the encoded body"));
}

json answer(const json& in, json (*run)(const wire_entry&, const json&))
{
    json out;
    try {
        if (!in.is_object()) throw usage_fault("a case must be an object");
        out = run(wanted_wire(in), in);
    } catch (const usage_fault& e) {
        out = json::object().set("error", json::object().set("kind", "usage").set("message", e.message()));
    } catch (const std::exception&) {
        out = json::object().set("error", provider_error_to_json(std::current_exception()));
    }
    if (const json* id = in.find("id")) {
        json named = json::object().set("id", *id);
        for (auto& [key, value] : out.as_object()) named.set(key, std::move(value));
        return named;
    }
    return out;
}

}  // namespace

json decode_case(const json& in)
{
    return answer(in, &decode_one);
}

json encode_case(const json& in)
{
    return answer(in, &encode_one);
}

}  // namespace reagent::inline v0
