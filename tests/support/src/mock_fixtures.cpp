#include <reagent/base/error.hpp>
#include <reagent/base/nearest.hpp>
#include <reagent/testing/mock_fixtures.hpp>
#include <reagent/testing/mock_server.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>

namespace reagent::inline v0::testing {

namespace {

constexpr std::array<std::string_view, 12> fault_names = {
    "none", "status", "html", "reset", "close", "stall", "trickle", "malformed_json", "truncated_arguments", "missing_done", "missing_finish", "error_event"};

constexpr std::size_t largest_fixtures = std::size_t{64} << 20U;
constexpr std::uint64_t longest_pause_ms = 24ULL * 3600 * 1000;

/// What follows "is not known": the nearest name there is, when it is near.
std::string hint(std::string_view name, std::span<const std::string_view> known)
{
    const std::optional<std::string> near = nearest_name(name, known);
    return near ? "; did you mean " + *near + '?' : std::string();
}

/// Reads one document, knowing the file and the place for its errors.
class reader {
public:
    explicit reader(std::string_view file) : file_(file) {}

    [[noreturn]] void fail(const std::string& where, const std::string& what) const
    {
        throw config_error(std::string(file_) + ": " + (where.empty() ? "" : where + ' ') + what);
    }
    static std::string join(const std::string& where, std::string_view key) { return where.empty() ? std::string(key) : where + '.' + std::string(key); }
    void expect_object(const json& j, const std::string& where) const
    {
        if (!j.is_object()) fail(where.empty() ? "the document" : where, "must be an object, not " + std::string(j.type_name()));
    }
    void only(const json& object, const std::string& where, std::span<const std::string_view> known) const
    {
        for (const auto& [key, value] : object.as_object()) {
            if (std::find(known.begin(), known.end(), key) != known.end()) continue;
            fail(join(where, key.substr(0, 60)), "is not known" + hint(key, known));
        }
    }
    const std::string* text(const json& object, std::string_view key, const std::string& where) const
    {
        const json* v = object.find(key);
        if (v == nullptr) return nullptr;
        if (!v->is_string()) fail(join(where, key), "must be a string, not " + std::string(v->type_name()));
        return &v->as_string();
    }
    std::optional<bool> flag(const json& object, std::string_view key, const std::string& where) const
    {
        const json* v = object.find(key);
        if (v == nullptr) return std::nullopt;
        if (!v->is_bool()) fail(join(where, key), "must be true or false, not " + std::string(v->type_name()));
        return v->as_bool();
    }
    std::optional<std::uint64_t> count(const json& object, std::string_view key, const std::string& where) const
    {
        const json* v = object.find(key);
        if (v == nullptr) return std::nullopt;
        const std::optional<std::uint64_t> n = v->get_uint64();
        if (!n) fail(join(where, key), "must be a whole number of at least 0, not " + v->dump().substr(0, 60));
        return n;
    }
    std::optional<std::chrono::milliseconds> pause(const json& object, std::string_view key, const std::string& where) const
    {
        const std::optional<std::uint64_t> n = count(object, key, where);
        if (!n) return std::nullopt;
        if (*n > longest_pause_ms) fail(join(where, key), "must be at most a day, 86400000, not " + std::to_string(*n));
        return std::chrono::milliseconds(*n);
    }
    int status(std::uint64_t n, const std::string& where) const
    {
        if (n < 400 || n > 599) fail(where, "must be a status from 400 to 599, not " + std::to_string(n));
        return static_cast<int>(n);
    }

    mock_fixture fixture(const json& j, const std::string& where) const;

private:
    void match(const json& j, const std::string& where, mock_match& m) const;
    void response(const json& j, const std::string& where, mock_response& r) const;
    void error(const json& j, const std::string& where, mock_response& r) const;
    void tool_calls(const json& j, const std::string& where, mock_response& r) const;
    void options(const json& j, const std::string& where, mock_fixture& f) const;
    void fault(const json& j, const std::string& where, mock_fault& f) const;
    void usage(const json& j, const std::string& where, mock_fixture& f) const;

    std::string_view file_;
};

constexpr std::array<std::string_view, 6> option_keys = {"usage", "chunkSize", "latency_ms", "gap_ms", "latency", "fault"};

void reader::match(const json& j, const std::string& where, mock_match& m) const
{
    static constexpr std::array<std::string_view, 8> known = {"userMessage", "hasToolResult", "turnIndex",     "toolName",
                                                              "toolCallId",  "model",         "sequenceIndex", "endpoint"};
    expect_object(j, where);
    only(j, where, known);
    const auto take = [&](std::string_view key, std::optional<std::string>& to) {
        if (const std::string* s = text(j, key, where)) to = *s;
    };
    take("userMessage", m.user_message);
    take("toolName", m.tool_name);
    take("toolCallId", m.tool_call_id);
    take("model", m.model);
    m.has_tool_result = flag(j, "hasToolResult", where);
    m.turn_index = count(j, "turnIndex", where);
    m.sequence_index = count(j, "sequenceIndex", where);
    if (const std::string* endpoint = text(j, "endpoint", where); endpoint != nullptr && *endpoint != "chat") {
        fail(join(where, "endpoint"), "must be \"chat\": no other endpoint is served");
    }
}

void reader::tool_calls(const json& j, const std::string& where, mock_response& r) const
{
    static constexpr std::array<std::string_view, 3> known = {"name", "arguments", "id"};
    if (!j.is_array()) fail(where, "must be an array, not " + std::string(j.type_name()));
    for (std::size_t i = 0; i < j.size(); ++i) {
        const std::string at = where + '[' + std::to_string(i) + ']';
        const json& call = j[i];
        expect_object(call, at);
        only(call, at, known);
        mock_tool_call& c = r.tool_calls.emplace_back();
        const std::string* name = text(call, "name", at);
        if (name == nullptr || name->empty()) fail(join(at, "name"), "is missing");
        c.name = *name;
        if (const std::string* id = text(call, "id", at)) c.id = *id;
        if (const json* a = call.find("arguments")) {
            if (!a->is_string() && !a->is_object()) { fail(join(at, "arguments"), "must be an object or a string, not " + std::string(a->type_name())); }
            c.arguments = a->is_string() ? a->as_string() : a->dump();
        } else {
            c.arguments = "{}";
        }
    }
}

void reader::error(const json& j, const std::string& where, mock_response& r) const
{
    static constexpr std::array<std::string_view, 4> known = {"status", "message", "type", "code"};
    expect_object(j, where);
    only(j, where, known);
    if (const auto n = count(j, "status", where)) r.status = status(*n, join(where, "status"));
    const std::string* message = text(j, "message", where);
    r.error_message = message != nullptr ? *message : "error by fixture";
    if (const std::string* s = text(j, "type", where)) r.error_type = *s;
    if (const std::string* s = text(j, "code", where)) r.error_code = *s;
}

void reader::response(const json& j, const std::string& where, mock_response& r) const
{
    if (const std::string* s = text(j, "content", where)) r.content = *s;
    if (const json* calls = j.find("toolCalls")) tool_calls(*calls, join(where, "toolCalls"), r);
    if (const json* e = j.find("error")) error(*e, join(where, "error"), r);
    if (const auto n = count(j, "status", where)) {
        if (!r.error_message) fail(join(where, "status"), "goes with error only");
        r.status = status(*n, join(where, "status"));
    }
    if (const std::string* s = text(j, "finishReason", where)) r.finish_reason = *s;
    if (!r.content && r.tool_calls.empty() && !r.error_message) fail(where, "needs content, toolCalls or error");
    if (r.error_message && (r.content || !r.tool_calls.empty())) fail(join(where, "error"), "cannot stand with content or toolCalls");
}

void reader::usage(const json& j, const std::string& where, mock_fixture& f) const
{
    static constexpr std::array<std::string_view, 3> known = {"prompt_tokens", "completion_tokens", "total_tokens"};
    if (const std::string* s = j.get_string()) {
        if (*s != "worst_case") fail(where, "must be \"worst_case\" or an object, not " + j.dump().substr(0, 60));
        f.usage = mock_usage::worst_case;
        return;
    }
    if (!j.is_object()) fail(where, "must be \"worst_case\" or an object, not " + std::string(j.type_name()));
    only(j, where, known);
    f.usage = mock_usage::given;
    f.prompt_tokens = count(j, "prompt_tokens", where).value_or(0);
    f.completion_tokens = count(j, "completion_tokens", where).value_or(0);
}

void reader::fault(const json& j, const std::string& where, mock_fault& f) const
{
    static constexpr std::array<std::string_view, 7> known = {"kind", "status", "retry_after_s", "after_bytes", "after_events", "message", "times"};
    expect_object(j, where);
    only(j, where, known);
    const std::string* kind = text(j, "kind", where);
    if (kind == nullptr) fail(join(where, "kind"), "is missing");
    const auto found = std::find(fault_names.begin() + 1, fault_names.end(), *kind);
    if (found == fault_names.end()) {
        const std::span<const std::string_view> names(fault_names.begin() + 1, fault_names.end());
        fail(join(where, "kind"), "\"" + kind->substr(0, 60) + "\" is not known" + hint(*kind, names));
    }
    f.kind = static_cast<mock_fault_kind>(found - fault_names.begin());
    if (const auto n = count(j, "status", where)) f.status = status(*n, join(where, "status"));
    f.retry_after_s = count(j, "retry_after_s", where).value_or(f.retry_after_s);
    f.after_bytes = count(j, "after_bytes", where).value_or(f.after_bytes);
    f.after_events = count(j, "after_events", where).value_or(f.after_events);
    f.times = count(j, "times", where).value_or(f.times);
    if (const std::string* s = text(j, "message", where)) f.message = *s;
}

void reader::options(const json& j, const std::string& where, mock_fixture& f) const
{
    if (const json* u = j.find("usage")) usage(*u, join(where, "usage"), f);
    if (const auto n = count(j, "chunkSize", where)) {
        if (*n == 0) fail(join(where, "chunkSize"), "must be at least 1");
        f.chunk_size = n;
    }
    for (const std::string_view key : {"latency", "latency_ms"}) {
        if (const auto t = pause(j, key, where)) f.latency = t;
    }
    if (const auto t = pause(j, "gap_ms", where)) f.gap = t;
    if (const json* x = j.find("fault")) fault(*x, join(where, "fault"), f.fault);
}

mock_fixture reader::fixture(const json& j, const std::string& where) const
{
    static constexpr auto known = [] {
        std::array<std::string_view, option_keys.size() + 2> all{"match", "response"};
        std::copy(option_keys.begin(), option_keys.end(), all.begin() + 2);
        return all;
    }();
    static constexpr auto known_response = [] {
        std::array<std::string_view, option_keys.size() + 5> all{"content", "toolCalls", "error", "status", "finishReason"};
        std::copy(option_keys.begin(), option_keys.end(), all.begin() + 5);
        return all;
    }();
    expect_object(j, where);
    only(j, where, known);
    mock_fixture f;
    if (const json* m = j.find("match")) match(*m, join(where, "match"), f.match);
    const json* r = j.find("response");
    const std::string at = join(where, "response");
    if (r == nullptr) fail(at, "is missing");
    expect_object(*r, at);
    only(*r, at, known_response);
    response(*r, at, f.response);
    options(*r, at, f);
    options(j, where, f);
    return f;
}

}  // namespace

std::string_view to_string(mock_fault_kind k) noexcept
{
    return fault_names[static_cast<std::size_t>(k)];
}

std::optional<mock_fault_kind> mock_fault_from(std::string_view name) noexcept
{
    int code = 0;
    const auto [end, ec] = std::from_chars(name.data(), name.data() + name.size(), code);
    if (ec == std::errc() && end == name.data() + name.size()) {
        if (code < 400 || code > 599) return std::nullopt;
        return mock_fault_kind::status;
    }
    const auto found = std::find(fault_names.begin() + 1, fault_names.end(), name);
    if (found == fault_names.end()) return std::nullopt;
    return static_cast<mock_fault_kind>(found - fault_names.begin());
}

mock_fixtures parse_mock_fixtures(std::string_view text, std::string_view file)
{
    static constexpr std::array<std::string_view, 1> known = {"fixtures"};
    const reader r(file);
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark, as some editors write
    std::size_t offset = 0;
    const auto document = json::parse(text, json::parse_options(), offset);
    if (!document) r.fail("", "not JSON at byte " + std::to_string(offset));
    r.expect_object(*document, "");
    r.only(*document, "", known);
    const json& list = (*document)["fixtures"];
    if (!list.is_array()) r.fail("fixtures", "must be an array, not " + std::string(list.type_name()));
    mock_fixtures out;
    for (std::size_t i = 0; i < list.size(); ++i) out.push_back(r.fixture(list[i], "fixtures[" + std::to_string(i) + ']'));
    return out;
}

mock_fixtures load_mock_fixtures(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    if (!in) throw config_error("cannot read " + path + ": " + std::strerror(errno));
    std::string text;
    std::array<char, 65536> piece{};
    while (text.size() <= largest_fixtures) {
        in.read(piece.data(), piece.size());
        text.append(piece.data(), static_cast<std::size_t>(in.gcount()));
        if (in.bad()) throw config_error("cannot read " + path + ": " + std::strerror(errno));  // a directory opens and then cannot be read
        if (!in) break;
    }
    if (text.size() > largest_fixtures) throw config_error(path + ": is longer than " + std::to_string(largest_fixtures >> 20U) + " MiB");
    return parse_mock_fixtures(text, path);
}

mock_fixtures default_mock_fixtures()
{
    mock_fixtures out(1);
    out[0].response.echo = true;
    return out;
}

void parse_fault_rates(std::string_view text, mock_options& options)
{
    double sum = 0;
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view part = text.substr(0, comma);
        text.remove_prefix(std::min(comma + 1, text.size()));
        const std::size_t equals = part.find('=');
        const std::string name(part.substr(0, equals));
        const auto kind = mock_fault_from(name);
        if (!kind || equals == std::string_view::npos) {
            throw config_error("fault rate \"" + std::string(part) + "\": write NAME=SHARE, where NAME is a status such as 429 or one of " + [] {
                std::string names;
                for (std::size_t i = 2; i < fault_names.size(); ++i) names += (i == 2 ? "" : ", ") + std::string(fault_names[i]);
                return names;
            }());
        }
        double share = 0;
        const std::string_view number = part.substr(equals + 1);
        const auto [end, ec] = std::from_chars(number.data(), number.data() + number.size(), share);
        if (ec != std::errc() || end != number.data() + number.size() || !(share >= 0 && share <= 1)) {
            throw config_error("fault rate \"" + std::string(part) + "\": the share must be a number from 0 to 1");
        }
        sum += share;
        mock_fault fault(*kind);
        if (*kind == mock_fault_kind::status) {
            fault.status = std::atoi(name.c_str());
        } else if (*kind == mock_fault_kind::reset || *kind == mock_fault_kind::close || *kind == mock_fault_kind::stall) {
            fault.after_bytes = 200;
        }
        options.fault_rate(std::move(fault), share);
    }
    if (sum > 1.0 + 1e-9) throw config_error("fault rates: the shares add up to more than 1");
}

}  // namespace reagent::inline v0::testing
