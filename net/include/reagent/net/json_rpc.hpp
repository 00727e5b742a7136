/// JSON-RPC 2.0 as text (spec/orchestration.md §23.1): telling messages apart and writing them. No I/O.
#pragma once
#include <reagent/base/error.hpp>
#include <reagent/base/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

enum class rpc_kind : unsigned char {
    request,       ///< `method` and `id`
    notification,  ///< `method` without `id`
    response,      ///< `id` with exactly one of `result` and `error`
    malformed,     ///< none of them; `problem` says why
};

namespace rpc_code {
inline constexpr std::int64_t parse_error = -32700, invalid_request = -32600, method_not_found = -32601, invalid_params = -32602, internal_error = -32603,
                              busy = -32000;
}

/// The `error` member of a response.
class rpc_error {
public:
    rpc_error() = default;
    rpc_error(std::int64_t c, std::string m, json d = {}) : code(c), message(std::move(m)), data(std::move(d)) {}
    std::int64_t code = 0;
    std::string message;  ///< foreign text when it came from the peer
    json data;            ///< null when absent
};

/// Thrown by a handler to answer with this error; thrown by `rpc_reply::take` for an error of the peer.
class rpc_fault : public error {
public:
    explicit rpc_fault(rpc_error e);
    const rpc_error& reply() const noexcept { return reply_; }

private:
    rpc_error reply_;
};

class rpc_message {
public:
    rpc_kind kind = rpc_kind::malformed;
    json id;  ///< string or number; null in a notification, and in the response to a request whose id was not readable
    std::string method;
    json params;  ///< an object, null when absent
    json result;
    rpc_error error;
    bool failed = false;  ///< a response with `error`
    std::string problem;
};

/// Tells by shape what a message is, never by its id. `jsonrpc` must be "2.0", `id` a string or a number, `params` an object if there; unknown
/// members are passed over. A response whose `error` is not as it should be is one all the same, so that its call ends.
rpc_message read_rpc(json message);

/// One line without line breaks; null `params` are left out.
std::string rpc_request_text(const json& id, std::string_view method, const json& params);
std::string rpc_notification_text(std::string_view method, const json& params);
std::string rpc_result_text(const json& id, const json& result);
std::string rpc_error_text(const json& id, const rpc_error& error);

}  // namespace reagent::inline v0
