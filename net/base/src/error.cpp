#include <reagent/base/error.hpp>

#include <boost/asio/error.hpp>

#include <new>
#include <system_error>

namespace reagent::inline v0 {
namespace {

const char* text_of(int value) noexcept
{
    switch (static_cast<errc>(value)) {
    case errc::cancelled: return "cancelled";
    case errc::deadline: return "the total time of the operation is used up";
    case errc::connect_timeout: return "connecting took longer than allowed";
    case errc::first_byte_timeout: return "the response head did not arrive in time";
    case errc::idle_timeout: return "no byte moved for too long";
    case errc::pool_timeout: return "no connection became free in time";
    case errc::attempt_timeout: return "an attempt took longer than allowed";
    case errc::invalid_argument: return "unusable argument";
    case errc::invalid_config: return "unusable configuration";
    case errc::invalid_json: return "not JSON";
    case errc::duplicate_key: return "a key stands twice in an object";
    case errc::invalid_url: return "not a usable URL";
    case errc::invalid_number: return "not a number of the wanted kind";
    case errc::limit_exceeded: return "a size or count limit was passed";
    case errc::resolve_failed: return "the name has no address";
    case errc::connect_failed: return "no address accepted the connection";
    case errc::tls_failed: return "the TLS handshake or certificate check failed";
    case errc::proxy_refused: return "the proxy refused the connection";
    case errc::transport_failed: return "the connection broke";
    case errc::stream_truncated: return "the answer ended before its end";
    case errc::malformed_response: return "the peer does not speak HTTP/1.1";
    case errc::bad_encoding: return "unsupported content coding";
    case errc::headers_too_large: return "the response head is over its limit";
    case errc::body_too_large: return "the body is over its limit";
    case errc::event_too_large: return "a stream event is over its limit";
    case errc::redirect_refused: return "a redirect was not followed";
    case errc::provider_failed: return "the model service answered with an error";
    case errc::rate_limited: return "the model service asks to slow down";
    case errc::circuit_open: return "the circuit is open after too many failures";
    case errc::tool_failed: return "a tool failed";
    case errc::halted: return "halted by the gate";
    case errc::denied: return "denied by the gate";
    case errc::budget_unavailable: return "the budget cannot be read or written";
    case errc::audit_failed: return "an audit line could not be written";
    case errc::not_found: return "not found";
    case errc::closed: return "the object takes no more work";
    case errc::unexpected: return "an exception without an error code";
    }
    return "unknown error";
}

class error_category_impl final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "reagent"; }
    std::string message(int value) const override { return text_of(value); }
    const char* message(int value, char*, std::size_t) const noexcept override { return text_of(value); }
};

bool is_aborted(const boost::system::error_code& code) noexcept
{
    return code == boost::asio::error::operation_aborted;
}

class condition_category_impl final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "reagent.condition"; }
    std::string message(int value) const override
    {
        switch (static_cast<condition>(value)) {
        case condition::cancelled: return "cancelled";
        case condition::timeout: return "a time limit fired";
        case condition::unavailable: return "the peer cannot be reached or broke off";
        case condition::malformed: return "the peer sent what cannot be read";
        case condition::rate_limited: return "slow down";
        }
        return "unknown condition";
    }
    bool equivalent(const boost::system::error_code& code, int value) const noexcept override
    {
        const bool ours = code.category() == reagent::error_category();
        const errc e = ours ? static_cast<errc>(code.value()) : errc{};
        switch (static_cast<condition>(value)) {
        case condition::cancelled: return e == errc::cancelled || is_aborted(code);
        case condition::timeout:
            return e == errc::deadline || e == errc::connect_timeout || e == errc::first_byte_timeout || e == errc::idle_timeout || e == errc::pool_timeout ||
                e == errc::attempt_timeout;
        case condition::unavailable:
            return e == errc::resolve_failed || e == errc::connect_failed || e == errc::tls_failed || e == errc::proxy_refused || e == errc::transport_failed ||
                e == errc::stream_truncated || e == errc::circuit_open;
        case condition::malformed:
            return e == errc::malformed_response || e == errc::bad_encoding || e == errc::headers_too_large || e == errc::body_too_large ||
                e == errc::event_too_large || e == errc::invalid_json;
        case condition::rate_limited: return e == errc::rate_limited;
        }
        return false;
    }
    using boost::system::error_category::equivalent;
};

std::string halt_message(const std::string& rule, std::string reason)
{
    return reason.empty() ? "[HALT: " + (rule.empty() ? std::string("unknown") : rule) + "]" : std::move(reason);
}

}  // namespace

const boost::system::error_category& error_category() noexcept
{
    static const error_category_impl instance;
    return instance;
}

const boost::system::error_category& condition_category() noexcept
{
    static const condition_category_impl instance;
    return instance;
}

boost::system::error_code make_error_code(errc e) noexcept
{
    return {static_cast<int>(e), error_category()};
}
boost::system::error_condition make_error_condition(condition c) noexcept
{
    return {static_cast<int>(c), condition_category()};
}

error::error(boost::system::error_code code, std::string message, bool retryable) : system_error(code), message_(std::move(message)), retryable_(retryable) {}

error::error(errc code, std::string message, bool retryable) : error(make_error_code(code), std::move(message), retryable) {}

timeout_error::timeout_error(errc which, std::string message) : error(which, std::move(message), which != errc::deadline) {}

std::string_view timeout_error::bound() const noexcept
{
    switch (static_cast<errc>(code().value())) {
    case errc::connect_timeout: return "connect";
    case errc::first_byte_timeout: return "headers";
    case errc::pool_timeout: return "pool";
    case errc::attempt_timeout: return "attempt";
    case errc::deadline: return "deadline";
    default: return "idle";
    }
}

halt_error::halt_error(std::string rule, std::string reason)
    : error(errc::halted, halt_message(rule, std::move(reason))), rule_(rule.empty() ? std::string("unknown") : std::move(rule))
{}

bool is_cancellation(const std::exception_ptr& failure) noexcept
{
    return failure && code_of(failure) == condition::cancelled;
}

boost::system::error_code code_of(const std::exception_ptr& failure) noexcept
{
    try {
        std::rethrow_exception(failure);
    } catch (const boost::system::system_error& e) {
        return e.code();
    } catch (const std::system_error& e) {
        if (e.code().category() == std::generic_category()) return {e.code().value(), boost::system::generic_category()};
        if (e.code().category() == std::system_category()) return {e.code().value(), boost::system::system_category()};
        return e.code();
    } catch (const std::bad_alloc&) {
        return boost::system::errc::make_error_code(boost::system::errc::not_enough_memory);
    } catch (...) {
        return make_error_code(errc::unexpected);
    }
}

std::string message_of(const std::exception_ptr& failure)
{
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception& e) {
        return e.what();
    } catch (...) {
        return "an exception of an unknown type";
    }
}

}  // namespace reagent::inline v0
