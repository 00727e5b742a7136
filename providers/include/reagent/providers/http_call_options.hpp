#pragma once
#include <reagent/base/log_sink.hpp>
#include <reagent/model/generate.hpp>

#include <cstddef>
#include <cstdint>

namespace reagent::inline v0 {

/// Sizes of one response (spec/loop-and-providers.md §2.3).
class response_limits {
public:
    response_limits() = default;
    std::size_t max_event = 16 * 1024 * 1024;        ///< bytes of one stream event
    std::uint64_t max_body = 64ull * 1024 * 1024;    ///< bytes of a decoded JSON body
    std::uint64_t max_stream = 64ull * 1024 * 1024;  ///< bytes of text, thinking, refusal and tool calls that a stream may add up to
    std::size_t max_error_body = 1024 * 1024;        ///< bytes read of a body with an error status; what is beyond is not looked at
};

/// What a provider over HTTP takes beside its codec: the limits of a call, and where warnings go.
class http_call_options {
public:
    http_call_options() = default;
    time_limit idle;        ///< longest time without a byte in either direction; default 600 s
    time_limit total;       ///< of a call, attempts of its own included; default off
    time_limit connect;     ///< name, TCP and TLS; default 10 s
    time_limit first_byte;  ///< from the last request byte to the end of the response head; default off
    response_limits limits;
    log_sink log;
};

}  // namespace reagent::inline v0
