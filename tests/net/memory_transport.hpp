/// A transport without a socket, for tests and fuzzers: two ends of a stream in memory.
#pragma once
#include "transport.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

namespace reagent::net_tests {

class memory_transport final : public net_detail::transport {
public:
    /// Both ends, each with room for `room` bytes that the other has not read.
    static std::pair<std::unique_ptr<memory_transport>, std::unique_ptr<memory_transport>> pair(any_io_executor ex, std::size_t room = 64 * 1024)
    {
        const auto shared = std::make_shared<wires>(std::move(ex), room);
        return {std::unique_ptr<memory_transport>(new memory_transport(shared, 0)), std::unique_ptr<memory_transport>(new memory_transport(shared, 1))};
    }
    ~memory_transport() override
    {
        wires_->sides[side_].ended = true;
        cancel();
        wires_->tell(1 - side_);
    }
    /// No more bytes from this end, as a FIN.
    void finish()
    {
        wires_->sides[side_].finished = true;
        wires_->tell(1 - side_);
    }
    net_detail::io_result try_read(char* to, std::size_t n) override
    {
        net_detail::io_result r;
        end& from = wires_->sides[1 - side_];
        r.bytes = std::min(n, from.sent.size());
        if (r.bytes == 0) {
            if (from.ended || from.finished) r.status = net_detail::io_status::closed;
            return r;
        }
        r.status = net_detail::io_status::ok;
        from.sent.copy(to, r.bytes);
        from.sent.erase(0, r.bytes);
        wires_->tell(1 - side_);
        return r;
    }
    net_detail::io_result try_write(std::string_view a, std::string_view b) override
    {
        net_detail::io_result r;
        r.wanted = net_detail::direction::write;
        end& to = wires_->sides[side_];
        if (wires_->sides[1 - side_].ended) {
            r.status = net_detail::io_status::failed;
            r.error = error_code(EPIPE, boost::system::system_category());
            return r;
        }
        const std::size_t room = wires_->room - std::min(to.sent.size(), wires_->room);
        r.bytes = std::min(room, a.size() + b.size());
        if (r.bytes == 0) return r;
        r.status = net_detail::io_status::ok;
        to.sent.append(a.substr(0, r.bytes));
        to.sent.append(b.substr(0, r.bytes - std::min(r.bytes, a.size())));
        wires_->tell(1 - side_);
        return r;
    }
    net_detail::io_result handshake() override
    {
        net_detail::io_result r;
        r.status = net_detail::io_status::ok;
        return r;
    }
    net_detail::peeked peek() noexcept override
    {
        const end& from = wires_->sides[1 - side_];
        if (!from.sent.empty()) return net_detail::peeked::bytes;
        return from.ended || from.finished ? net_detail::peeked::ended : net_detail::peeked::quiet;
    }
    awaitable<void> ready(net_detail::direction d, error_code& ec) override
    {
        return asio::async_initiate<const asio::use_awaitable_t<>&, void()>(
            [this, d, &ec](auto handler) {
                auto finish = [&ec, h = std::move(handler)](error_code e) mutable {
                    ec = e;
                    std::move(h)();
                };
                when_ready(d, net_detail::ready_handler(std::move(finish)));
            },
            asio::use_awaitable);
    }
    awaitable<void> ready_either(error_code& ec) override { return ready(net_detail::direction::read, ec); }
    void when_ready(net_detail::direction d, net_detail::ready_handler handler) override
    {
        wires_->sides[side_].waiters[d == net_detail::direction::write].emplace(std::move(handler));
        wires_->tell(side_);
    }
    void cancel() noexcept override
    {
        for (const std::size_t d : {0u, 1u}) wires_->finish(side_, d, asio::error::operation_aborted);
    }

private:
    struct end {
        std::string sent;                                                 // that the other end has not read
        bool ended = false;                                               // this end is gone
        bool finished = false;                                            // it says no more
        std::array<std::optional<net_detail::ready_handler>, 2> waiters;  // to read, to write
    };
    struct wires {
        wires(any_io_executor e, std::size_t r) : ex(std::move(e)), room(r) {}
        // Whoever of this side waits for what has come about.
        void tell(std::size_t side)
        {
            const end& other = sides[1 - side];
            if (!other.sent.empty() || other.ended || other.finished) finish(side, 0, {});
            if (sides[side].sent.size() < room || sides[1 - side].ended) finish(side, 1, {});
        }
        void finish(std::size_t side, std::size_t d, error_code ec)
        {
            std::optional<net_detail::ready_handler>& waiter = sides[side].waiters[d];
            if (!waiter) return;
            asio::post(ex, [h = std::move(*waiter), ec]() mutable { std::move(h)(ec); });
            waiter.reset();
        }
        any_io_executor ex;
        std::size_t room;
        std::array<end, 2> sides;
    };
    memory_transport(std::shared_ptr<wires> w, std::size_t side) : wires_(std::move(w)), side_(side) {}
    std::shared_ptr<wires> wires_;
    std::size_t side_;
};

}  // namespace reagent::net_tests
