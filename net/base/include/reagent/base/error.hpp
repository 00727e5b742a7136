#pragma once
#include <boost/system/error_code.hpp>
#include <boost/system/error_condition.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// What went wrong. Callers compare with `condition`; the message of the exception tells the story.
enum class errc {
    cancelled = 1,       ///< the caller cancelled the operation
    deadline,            ///< the total time of the operation is used up
    connect_timeout,     ///< name look-up, TCP and TLS together took longer than allowed
    first_byte_timeout,  ///< the response head did not arrive in time
    idle_timeout,        ///< no byte moved in either direction for too long
    pool_timeout,        ///< no connection of the origin became free in time
    attempt_timeout,     ///< one attempt of several took longer than it may
    invalid_argument,    ///< a value handed in by the caller is unusable
    invalid_config,      ///< a configuration is unusable; the message names the key
    invalid_json,        ///< text is not JSON
    duplicate_key,       ///< an object of a JSON text names a key twice, where that is not allowed
    invalid_url,         ///< text is not a usable URL
    invalid_number,      ///< text is not a number of the wanted kind
    limit_exceeded,      ///< a named size or count limit was passed
    resolve_failed,      ///< the name has no address
    connect_failed,      ///< no address accepted the connection
    tls_failed,          ///< the TLS handshake or certificate check failed
    proxy_refused,       ///< a proxy did not let the connection through
    transport_failed,    ///< the connection broke
    stream_truncated,    ///< the body or stream ended before its end
    malformed_response,  ///< the peer does not speak HTTP/1.1
    bad_encoding,        ///< a content coding that is not gzip or deflate
    headers_too_large,   ///< response head over its limit
    body_too_large,      ///< body over its limit
    event_too_large,     ///< one stream event over its limit
    redirect_refused,    ///< a redirect led too far, to another origin, from https to http, or to no usable URL
    provider_failed,     ///< the model service answered with an error
    rate_limited,        ///< the model service asks to slow down
    circuit_open,        ///< too many calls failed of late; none is made for a while
    tool_failed,         ///< a tool failed
    halted,              ///< the gate halts the run
    denied,              ///< the gate denies the action
    budget_unavailable,  ///< the budget cannot be read or written
    audit_failed,        ///< an audit line could not be written
    not_found,           ///< the thing named is not there
    closed,              ///< the object no longer takes work
    unexpected,          ///< an exception that carries no code of its own
};

/// What callers branch on.
enum class condition {
    cancelled = 1,  ///< errc::cancelled or asio's operation_aborted
    timeout,        ///< any of the four limits, pool_timeout and attempt_timeout included
    unavailable,    ///< resolve, connect, TLS, transport or a truncated answer, or an open circuit
    malformed,      ///< the peer sent what we cannot read, or more of it than we take
    rate_limited,   ///< slow down
};

const boost::system::error_category& error_category() noexcept;
const boost::system::error_category& condition_category() noexcept;
boost::system::error_code make_error_code(errc e) noexcept;
boost::system::error_condition make_error_condition(condition c) noexcept;

}  // namespace reagent::inline v0

namespace boost::system {
template <>
struct is_error_code_enum<reagent::errc> : std::true_type {};
template <>
struct is_error_condition_enum<reagent::condition> : std::true_type {};
}  // namespace boost::system

namespace reagent::inline v0 {

/// Root of every exception of the library: a `system_error`, so an `error_code` is always there, plus one sentence that says what
/// failed, on what, and what to do. `what()` is exactly that sentence. It never holds a secret.
class error : public boost::system::system_error {
public:
    error(boost::system::error_code code, std::string message, bool retryable = false);
    error(errc code, std::string message, bool retryable = false);
    const char* what() const noexcept override { return message_.c_str(); }
    const std::string& message() const noexcept { return message_; }
    /// Whether the same request may succeed when sent again.
    bool retryable() const noexcept { return retryable_; }

private:
    std::string message_;
    bool retryable_;
};

/// A configuration that cannot be used; the message starts with the key (`section.key[index]`). spec/governance.md §1.5.
class config_error : public error {
public:
    explicit config_error(std::string message) : error(errc::invalid_config, std::move(message)) {}
};

/// A caller's argument that cannot be used (ValidationError of spec/loop-and-providers.md §14).
class validation_error : public error {
public:
    explicit validation_error(std::string message) : error(errc::invalid_argument, std::move(message)) {}
};

/// One of the limits of a call fired; `code()` says which (spec/loop-and-providers.md §2.2 and §14).
class timeout_error : public error {
public:
    /// `bound` is `connect`, `headers`, `idle`, `pool`, `attempt` or `deadline`; only a deadline is final.
    timeout_error(errc which, std::string message);
    std::string_view bound() const noexcept;
};

/// The caller cancelled (CancelledError, ECANCELED).
class cancelled_error : public error {
public:
    explicit cancelled_error(std::string message = "[Run] cancelled") : error(errc::cancelled, std::move(message)) {}
};

/// The run is over by order of a gate, a hook or a tool. Never retried, never shown to the model. spec/loop-and-providers.md §12.4.
class halt_error : public error {
public:
    /// An empty `rule` reads `unknown`; an empty `reason` gives the message `[HALT: <rule>]`.
    explicit halt_error(std::string rule, std::string reason = {});
    const std::string& rule() const noexcept { return rule_; }

private:
    std::string rule_;
};

/// Whether `failure` is a cancellation, ours or Asio's.
bool is_cancellation(const std::exception_ptr& failure) noexcept;
/// The code and sentence of any exception, for logs and results. `current` must not be null.
boost::system::error_code code_of(const std::exception_ptr& failure) noexcept;
std::string message_of(const std::exception_ptr& failure);

}  // namespace reagent::inline v0
