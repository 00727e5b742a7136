#include <reagent/testing/mock_server.hpp>

#include "mock_session.hpp"

#include <reagent/base/error.hpp>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <thread>

namespace reagent::inline v0::testing {

namespace {

http_server_options server_options(const mock_options& o, const std::shared_ptr<testing_detail::mock_shared>& shared)
{
    http_server_options s;
    s.port = o.port_;
    s.address = o.address_;
    s.backlog = 16'384;
    s.clock = shared->clock;
    s.limits.max_body = o.max_body_;
    // Clients of tests are slow on purpose.
    s.tls = o.tls_;
    s.limits.handshake = s.limits.head = s.limits.body_idle = s.limits.write_idle = s.limits.keep_alive = std::chrono::nanoseconds(0);
    s.on_connection = [shared] { shared->ledger.connected(); };
    s.refusal = [](unsigned, std::string_view text) {
        return std::pair<std::string, std::string>("application/json", testing_detail::chat_wire.error(400, text, {}, "bad_request"));
    };
    return s;
}

}  // namespace

struct mock_server::impl : std::enable_shared_from_this<impl> {
    impl(any_io_executor ex, mock_options o)
        : shared(std::make_shared<testing_detail::mock_shared>(ex, std::move(o))), server(ex, server_options(shared->options, shared)), port(server.port())
    {
        server.fallback([s = shared](server_request&& request, http_responder responder) {
            const std::uint64_t number = ++s->sessions;
            const auto session = std::make_shared<testing_detail::mock_session>(s, responder.take_raw(), number);
            s->live.emplace(number, session);
            session->handle(std::move(request));
        });
    }

    void stop()
    {
        const auto sessions = shared->live;
        for (const auto& [number, session] : sessions) session->finish("stopped");
        server.stop();
    }

    std::shared_ptr<testing_detail::mock_shared> shared;
    http_server server;
    std::uint16_t port = 0;
};

struct mock_server::own_thread {
    asio::io_context context{1};
    asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(context);
    std::thread thread;
};

mock_server::mock_server(any_io_executor ex, mock_options options) : impl_(std::make_shared<impl>(std::move(ex), std::move(options))) {}

mock_server::mock_server(mock_options options) : thread_(std::make_unique<own_thread>())
{
    impl_ = std::make_shared<impl>(thread_->context.get_executor(), std::move(options));
    thread_->thread = std::thread([context = &thread_->context] { context->run(); });
}

mock_server::~mock_server()
{
    if (thread_) {
        stop();
        thread_->work.reset();
        thread_->thread.join();
        impl_.reset();
    } else {
        impl_->stop();
    }
}

std::uint16_t mock_server::port() const noexcept
{
    return impl_->port;
}
std::string mock_server::origin() const
{
    return impl_->server.origin();
}
std::string mock_server::base_url() const
{
    return origin() + "/v1";
}

void mock_server::stop()
{
    asio::dispatch(impl_->shared->ex, [self = impl_] { self->stop(); });
}

mock_stats mock_server::stats() const
{
    return impl_->shared->ledger.stats();
}
std::vector<mock_entry> mock_server::journal() const
{
    return impl_->shared->ledger.journal();
}

bool mock_server::wait_until(const std::function<bool(const mock_stats&)>& seen, std::chrono::milliseconds limit) const
{
    return impl_->shared->ledger.wait_until(seen, limit);
}

}  // namespace reagent::inline v0::testing
