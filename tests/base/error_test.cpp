#include <reagent/base/error.hpp>

#include <boost/asio/error.hpp>

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <system_error>

namespace {
namespace error_test {
using namespace reagent;

template <class E>
std::exception_ptr thrown(E e)
{
    return std::make_exception_ptr(std::move(e));
}

TEST(Errors, ConditionsGroupTheCodes)
{
    const auto code = [](errc e) { return make_error_code(e); };
    for (errc e : {errc::deadline, errc::connect_timeout, errc::first_byte_timeout, errc::idle_timeout, errc::pool_timeout}) {
        EXPECT_TRUE(code(e) == condition::timeout) << static_cast<int>(e);
        EXPECT_FALSE(code(e) == condition::unavailable);
        EXPECT_FALSE(code(e) == condition::cancelled);
    }
    for (errc e : {errc::resolve_failed, errc::connect_failed, errc::tls_failed, errc::transport_failed, errc::stream_truncated}) {
        EXPECT_TRUE(code(e) == condition::unavailable) << static_cast<int>(e);
    }
    for (errc e : {errc::malformed_response, errc::bad_encoding, errc::headers_too_large, errc::body_too_large, errc::event_too_large, errc::invalid_json}) {
        EXPECT_TRUE(code(e) == condition::malformed) << static_cast<int>(e);
    }
    EXPECT_TRUE(code(errc::rate_limited) == condition::rate_limited);
    EXPECT_TRUE(code(errc::cancelled) == condition::cancelled);
    const boost::system::error_code aborted = boost::asio::error::operation_aborted;
    EXPECT_TRUE(aborted == condition::cancelled);
    EXPECT_FALSE(aborted == condition::timeout);
    EXPECT_FALSE(boost::system::error_code() == condition::cancelled);
}

TEST(Errors, EveryCodeHasItsOwnSentence)
{
    const std::string unknown = error_category().message(9999);
    for (int v = 1; v <= static_cast<int>(errc::unexpected); ++v) EXPECT_NE(error_category().message(v), unknown) << v;
    EXPECT_STREQ(error_category().name(), "reagent");
}

TEST(Errors, WhatIsTheMessageAndNothingElse)
{
    const error e(errc::provider_failed, "[X] HTTP 500", true);
    EXPECT_STREQ(e.what(), "[X] HTTP 500");
    EXPECT_TRUE(e.retryable());
    EXPECT_EQ(e.code(), errc::provider_failed);
    EXPECT_FALSE(validation_error("v").retryable());
    EXPECT_EQ(validation_error("v").code(), errc::invalid_argument);
    EXPECT_EQ(config_error("k: bad").code(), errc::invalid_config);
}

TEST(Errors, TimeoutsNameTheirBoundAndOnlyADeadlineIsFinal)
{
    struct row {
        errc code;
        const char* bound;
        bool retryable;
    };
    for (const row& r : {row{errc::connect_timeout, "connect", true}, row{errc::first_byte_timeout, "headers", true}, row{errc::idle_timeout, "idle", true},
                         row{errc::pool_timeout, "pool", true}, row{errc::deadline, "deadline", false}}) {
        const timeout_error e(r.code, "m");
        EXPECT_EQ(e.bound(), r.bound);
        EXPECT_EQ(e.retryable(), r.retryable);
    }
}

TEST(Errors, HaltNamesItsRule)
{
    EXPECT_STREQ(halt_error("limits.maxTurns").what(), "[HALT: limits.maxTurns]");
    EXPECT_EQ(halt_error("").rule(), "unknown");
    EXPECT_STREQ(halt_error("").what(), "[HALT: unknown]");
    EXPECT_STREQ(halt_error("r", "because").what(), "because");
    EXPECT_EQ(halt_error("r", "because").rule(), "r");
}

TEST(Errors, AnyExceptionHasACodeAndASentence)
{
    EXPECT_EQ(code_of(thrown(error(errc::denied, "d"))), errc::denied);
    EXPECT_EQ(code_of(thrown(std::system_error(std::make_error_code(std::errc::permission_denied)))).value(), EACCES);
    EXPECT_EQ(code_of(thrown(std::bad_alloc())).value(), ENOMEM);
    EXPECT_EQ(code_of(thrown(std::runtime_error("r"))), errc::unexpected);
    EXPECT_EQ(code_of(thrown(7)), errc::unexpected);
    EXPECT_EQ(message_of(thrown(std::runtime_error("r"))), "r");
    EXPECT_EQ(message_of(thrown(7)), "an exception of an unknown type");
    EXPECT_TRUE(is_cancellation(thrown(cancelled_error())));
    EXPECT_TRUE(is_cancellation(thrown(boost::system::system_error(boost::asio::error::operation_aborted))));
    EXPECT_FALSE(is_cancellation(thrown(timeout_error(errc::deadline, "d"))));
    EXPECT_FALSE(is_cancellation(nullptr));
}

}  // namespace error_test
}  // namespace
