/// The wires that the mock speaks, each a file of pure functions: what a request says, and an answer as one body or as the events of a stream.
#pragma once
#include <reagent/testing/mock_fixtures.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reagent::inline v0::testing_detail {

using testing::mock_tool_call;

/// What a request says about itself, on any wire.
struct chat_facts {
    std::string model, last_user, last_tool_call_id;
    bool stream = false, include_usage = false, has_tool_result = false;
    std::uint64_t assistant_messages = 0;
    std::vector<std::string> tools;
    std::uint64_t max_tokens = 0;  ///< 0 when the request names none
};

/// An answer before a wire writes it.
struct mock_answer {
    std::uint64_t sequence = 0;
    std::string model, text;
    bool has_text = false;
    std::vector<mock_tool_call> calls;
    std::string finish;  ///< in the words of the chat wire
    std::uint64_t input = 0, output = 0;
    std::uint64_t chunk_size = 24;
    bool include_usage = true;
    bool with_finish = true, with_done = true;  ///< of a stream: what a fault leaves out
};

/// An event of a stream, or a line of one.
struct wire_event {
    std::string type, data;
};

struct mock_wire {
    /// Reads a request; a complaint when it is not one of this wire, else empty.
    std::string (*read)(const json& body, chat_facts& out);
    std::string (*body)(const mock_answer& a);
    std::vector<wire_event> (*events)(const mock_answer& a);
    /// The body of an answer with an error status. An empty type is this wire's own word for the status.
    std::string (*error)(int status, std::string_view message, std::string_view type, std::string_view code);
    /// An error inside a stream, before its event number `at`; status 0 when none is told.
    wire_event (*error_event)(int status, std::string_view message, std::size_t at);
    bool lines = false;  ///< streams are NDJSON
};

extern const mock_wire chat_wire, responses_wire, messages_wire, gemini_wire, ollama_wire;

/// Where a path leads. Gemini's says the model and whether to stream.
struct mock_route {
    const mock_wire* wire = nullptr;
    std::string model;
    bool stream = false;
};
std::optional<mock_route> route_of(std::string_view path);

/// Reads a request body; a complaint when it is not a request of the wire, else empty.
std::string read_request(const mock_route& route, std::string_view body, chat_facts& out);

/// The texts of parts, joined by LF, or the string itself.
std::string text_of(const json& content);
/// A user message: what the tools said before it is no longer the latest.
void note_user(chat_facts& facts, const json& content);
void note_tool_result(chat_facts& facts, const json& id);
void note_tool(chat_facts& facts, const json& name);
/// Cuts `text` every `size` bytes, never inside a character.
std::vector<std::string_view> cut(std::string_view text, std::uint64_t size);
json list_of(json one);
/// Arguments as a value, for wires that have them so; what is not JSON (a fault) stays a string.
json arguments_of(const mock_tool_call& call);
/// The finish reason by a wire's own words; an unknown one as it is.
std::string finish_by(std::string_view finish, std::initializer_list<std::pair<std::string_view, std::string_view>> words);

}  // namespace reagent::inline v0::testing_detail
