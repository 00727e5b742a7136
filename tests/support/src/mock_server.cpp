#include <reagent/testing/mock_server.hpp>

#include "mock_session.hpp"

#include <reagent/base/error.hpp>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <thread>

namespace reagent::inline v0::testing {

using asio::ip::tcp;

struct mock_server::impl : std::enable_shared_from_this<impl> {
    impl(any_io_executor ex, mock_options o) : shared(std::make_shared<testing_detail::mock_shared>(ex, std::move(o))), acceptor(ex)
    {
        const tcp::endpoint where(asio::ip::address_v4::loopback(), shared->options.port_);
        error_code ec;
        acceptor.open(where.protocol(), ec);
        if (!ec) acceptor.set_option(asio::socket_base::reuse_address(true), ec);
        if (!ec) acceptor.bind(where, ec);
        if (!ec) acceptor.listen(backlog, ec);
        if (!ec) acceptor.non_blocking(true, ec);
        if (ec) throw error(ec, "cannot listen on 127.0.0.1:" + std::to_string(shared->options.port_) + ": " + ec.message());
        port = acceptor.local_endpoint().port();
        retry_timer = shared->clock->make_timer(ex, [this] { wait(); });
    }

    static constexpr int backlog = 16'384;

    void wait()
    {
        acceptor.async_wait(tcp::acceptor::wait_read, [self = shared_from_this()](error_code ec) {
            if (!ec && !self->stopped) self->accept();
        });
    }

    void accept()
    {
        // A bounded bite, so that a storm of connections does not starve the open ones.
        constexpr int bite = 256;
        for (int i = 0; i < bite; ++i) {
            error_code ec;
            tcp::socket socket = acceptor.accept(ec);
            if (ec == asio::error::would_block) break;
            if (ec == asio::error::connection_aborted) continue;
            if (ec) {  // out of descriptors: look again when some may have been freed
                retry_timer->arm(shared->clock->now() + std::chrono::milliseconds(50));
                return;
            }
            socket.non_blocking(true, ec);
            socket.set_option(tcp::no_delay(true), ec);
            const std::uint64_t number = ++connections;
            auto session = std::make_shared<testing_detail::mock_session>(shared, std::move(socket), number);
            shared->live.emplace(number, session);
            shared->ledger.connected();
            session->start();
        }
        wait();
    }

    void stop()
    {
        if (stopped) return;
        stopped = true;
        error_code ignored;
        acceptor.close(ignored);
        retry_timer->disarm();
        const auto sessions = shared->live;
        for (const auto& [number, session] : sessions) session->finish("stopped");
    }

    std::shared_ptr<testing_detail::mock_shared> shared;
    tcp::acceptor acceptor;
    std::unique_ptr<clock_timer> retry_timer;  // guards against spinning on a failed accept
    std::uint16_t port = 0;
    std::uint64_t connections = 0;
    bool stopped = false;
};

struct mock_server::own_thread {
    asio::io_context context{1};
    asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(context);
    std::thread thread;
};

mock_server::mock_server(any_io_executor ex, mock_options options) : impl_(std::make_shared<impl>(std::move(ex), std::move(options)))
{
    impl_->wait();
}

mock_server::mock_server(mock_options options) : thread_(std::make_unique<own_thread>())
{
    impl_ = std::make_shared<impl>(thread_->context.get_executor(), std::move(options));
    impl_->wait();
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

std::uint16_t mock_server::port() const noexcept { return impl_->port; }
std::string mock_server::origin() const { return "http://127.0.0.1:" + std::to_string(impl_->port); }
std::string mock_server::base_url() const { return origin() + "/v1"; }

void mock_server::stop()
{
    asio::dispatch(impl_->shared->ex, [self = impl_] { self->stop(); });
}

mock_stats mock_server::stats() const { return impl_->shared->ledger.stats(); }
std::vector<mock_entry> mock_server::journal() const { return impl_->shared->ledger.journal(); }

bool mock_server::wait_until(const std::function<bool(const mock_stats&)>& seen, std::chrono::milliseconds limit) const
{
    return impl_->shared->ledger.wait_until(seen, limit);
}

}  // namespace reagent::inline v0::testing
