#pragma once
#include <reagent/base/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0::testing {

/// What the mock does wrong on purpose.
enum class mock_fault_kind : std::uint8_t {
    none,
    status,               ///< an error answer with `status`; 429 and 503 carry Retry-After
    html,                 ///< an HTML page with `status` (502), as a proxy sends it
    reset,                ///< RST after `after_bytes` of the answer
    close,                ///< FIN after `after_bytes` of the answer
    stall,                ///< silence after `after_bytes` until the client gives up
    trickle,              ///< the right answer, one byte per write
    malformed_json,       ///< a whole HTTP answer whose JSON is cut (in a stream: one event of it)
    truncated_arguments,  ///< tool arguments end half way, all else is right
    missing_done,         ///< the stream ends without `[DONE]`
    missing_finish,       ///< the stream ends with neither a finish reason nor `[DONE]`
    error_event           ///< an error event after `after_events` events of the stream (as one answer: status)
};

std::string_view to_string(mock_fault_kind k) noexcept;
/// The kind by its name or by a status code (`429`); nothing when it is neither.
std::optional<mock_fault_kind> mock_fault_from(std::string_view name) noexcept;

class mock_fault {
public:
    mock_fault() = default;
    explicit mock_fault(mock_fault_kind k, int s = 0) : kind(k), status(s) {}
    mock_fault_kind kind = mock_fault_kind::none;
    int status = 0;  ///< 0: 500, for html 502, for error_event none
    std::uint64_t retry_after_s = 1;
    std::uint64_t after_bytes = 0;  ///< of the whole answer, head included
    std::uint64_t after_events = 1;
    std::uint64_t times = UINT64_MAX;  ///< only the first so many requests that match
    std::string message = "injected by the mock";
};

/// Which requests a fixture answers; every condition given must hold.
class mock_match {
public:
    std::optional<std::string> user_message;  ///< a part of the last user message
    std::optional<bool> has_tool_result;      ///< a tool message after the last user message
    std::optional<std::uint64_t> turn_index;  ///< assistant messages so far
    std::optional<std::string> tool_name;     ///< a tool offered
    std::optional<std::string> tool_call_id;  ///< answered by the last tool message
    std::optional<std::string> model;
    std::optional<std::uint64_t> sequence_index;  ///< how often the other conditions have held before
};

class mock_tool_call {
public:
    std::string name, arguments, id;  ///< the id is made up when empty
};

enum class mock_usage : std::uint8_t {
    estimated,   ///< a token for four bytes of body and of answer, at most the request's maximum
    worst_case,  ///< the bytes of the body, and the request's maximum
    given
};

class mock_response {
public:
    std::optional<std::string> content;
    std::vector<mock_tool_call> tool_calls;
    bool echo = false;  ///< content is what the user said
    std::optional<int> status;
    std::optional<std::string> error_message;
    std::string error_type, error_code;
    std::string finish_reason;  ///< `stop` or `tool_calls` when empty
};

class mock_fixture {
public:
    mock_match match;
    mock_response response;
    mock_usage usage = mock_usage::estimated;
    std::uint64_t prompt_tokens = 0, completion_tokens = 0;  ///< when given
    std::optional<std::uint64_t> chunk_size;                 ///< bytes of text or arguments in a stream event
    std::optional<std::chrono::milliseconds> latency, gap;   ///< before the answer, and between events
    mock_fault fault;
};

using mock_fixtures = std::vector<mock_fixture>;

/// Reads a fixtures document (`{"fixtures":[{"match":{…},"response":{…}, options…}]}`). Throws `config_error` with one line that names `file`, the place
/// (`fixtures[2].match.turnIndex`) and what is wrong; unknown keys are refused with the nearest known one.
mock_fixtures parse_mock_fixtures(std::string_view text, std::string_view file);
mock_fixtures load_mock_fixtures(const std::string& path);
/// One fixture that answers everything: `You said: …`.
mock_fixtures default_mock_fixtures();

}  // namespace reagent::inline v0::testing
