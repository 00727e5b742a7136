/// Calls after calls on one thread, as many at a time as the flags say: what a measuring client of ours does around the call it measures.
#pragma once
#include "bench_common.hpp"

#include <reagent/base/asio.hpp>
#include <reagent/base/error.hpp>

#include <reagent/net/http_client.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace bench {

class call_loop {
public:
    call_loop(const client_flags& flags, const char* name) : flags_(flags), name_(name), context_(1), measured_(flags, name) {}
    call_loop(const call_loop&) = delete;
    call_loop& operator=(const call_loop&) = delete;

    /// Exit status: 1, with the reason on standard error, when a call failed.
    int run()
    {
        for (int i = 0; i < flags_.in_flight; ++i) boost::asio::co_spawn(context_, call_after_call(), ended_);
        context_.run();
        if (!failure_.empty()) {
            std::fprintf(stderr, "%s: %s\n", name_, failure_.c_str());
            return 1;
        }
        measured_.print();
        std::quick_exit(0);  // a thousand idle connections need no farewell
    }

protected:
    ~call_loop() = default;
    /// One call; throws `reagent::error` when it fails.
    virtual reagent::awaitable<void> call() = 0;

    /// `http://127.0.0.1:8080` of the flags.
    std::string origin() const { return std::string(flags_.tls ? "https" : "http") + "://127.0.0.1:" + std::to_string(flags_.port); }
    /// One idle connection a call, and the bundle of SSL_CERT_FILE beside the system's.
    reagent::http_client_options transport() const
    {
        reagent::http_client_options o;
        o.max_idle_per_origin = static_cast<std::size_t>(flags_.in_flight);
        if (const char* bundle = std::getenv("SSL_CERT_FILE"); flags_.tls && bundle) o.tls.ca_file = bundle;
        return o;
    }
    boost::asio::io_context& context() noexcept { return context_; }
    measurement& measured() noexcept { return measured_; }
    void sample_since(std::int64_t began) { measured_.sample(static_cast<float>(monotonic_ns() - began) / 1000.f); }

private:
    reagent::awaitable<void> call_after_call()
    {
        while (!measured_.finished()) {
            bool failed = false;
            try {
                co_await call();
            } catch (const reagent::error& e) {
                failed = true;
                if (failure_.empty()) failure_ = e.what();
            }
            if (failed) {
                measured_.call_failed();
                break;
            }
            measured_.call_done();
        }
        context_.stop();
    }

    const client_flags& flags_;
    const char* name_;
    boost::asio::io_context context_;
    measurement measured_;
    std::string failure_;
    // The loop catches what a call throws; anything else is a bug worth an abort.
    static constexpr auto ended_ = [](std::exception_ptr failure) {
        if (failure) std::rethrow_exception(failure);
    };
};

}  // namespace bench
