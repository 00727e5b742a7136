#include "dialler.hpp"

#include "connect.hpp"
#include "response_reader.hpp"
#include "tls.hpp"

#include <reagent/base/untrusted_text.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace reagent::inline v0::net_detail {
namespace {

using addresses = std::vector<ip_address>;

// Longest answer of a proxy to CONNECT.
constexpr std::size_t largest_answer = 16 * 1024;

// Runs `work` until its end; both the caller's cancellation and `stop` cancel it.
awaitable<addresses> stoppable(any_io_executor ex, awaitable<addresses> work, asio::cancellation_signal& stop)
{
    return asio::async_initiate<const asio::use_awaitable_t<>&, void(std::exception_ptr, addresses)>(
        [ex, &stop](auto handler, awaitable<addresses> w) {
            auto slot = asio::get_associated_cancellation_slot(handler);
            if (slot.is_connected()) slot.assign([&stop](asio::cancellation_type type) { stop.emit(type); });
            asio::co_spawn(ex, std::move(w), asio::bind_cancellation_slot(stop.slot(), std::move(handler)));
        },
        asio::use_awaitable, std::move(work));
}

bool is_literal(const url& u) noexcept
{
    return u.kind() != url::host_kind::name;
}

std::string connect_request(const dial_target& target)
{
    const url& to = target.to;
    const bool brackets = to.kind() == url::host_kind::ipv6;
    const std::string authority = (brackets ? "[" + to.host() + "]" : to.host()) + ":" + std::to_string(to.port());
    std::string head = "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n";
    if (!target.via.authorization().empty()) head.append("Proxy-Authorization: ").append(target.via.authorization().reveal()).append("\r\n");
    return head += "\r\n";
}

[[noreturn]] void refuse(const dial_target& target, const std::string& why, bool retryable, error_code cause = {})
{
    throw transport_error(errc::proxy_refused, target.label + ": the proxy " + target.via.at().origin() + " " + why, retryable, cause);
}

// Throws unless the whole answer is there and is a success.
void judge_answer(const response_reader& reader, bool more_behind, const dial_target& target)
{
    if (reader.failed()) refuse(target, "answered CONNECT with what is not HTTP: " + std::string(reader.failure_text()), false);
    const unsigned status = reader.head().status;
    if (status == 407) refuse(target, target.via.authorization().empty() ? "asks for credentials (407)" : "does not take the credentials (407)", false);
    if (status < 200 || status > 299) refuse(target, "answered CONNECT with status " + std::to_string(status), status >= 500);
    // The server behind it speaks second; bytes in front of it are somebody else's.
    if (more_behind) refuse(target, "sent bytes behind its answer to CONNECT", false);
}

}  // namespace

dialler::dialler(any_io_executor ex, const http_client_options& options, clock_ptr clock, deadline_queue& times)
    : ex_(std::move(ex)), hub_(ready_hub::make(ex_)), options_(options), clock_(std::move(clock)), times_(times), names_(options.resolver)
{
    if (!names_) {
        dns_options dns;
        dns.clock = clock_;
        names_ = make_system_resolver(ex_, std::move(dns));
    }
    // A bad file is found now; the system's store waits for the first https request.
    const tls_options& t = options.tls;
    if (!t.ca_file.empty() || !t.ca_dir.empty() || !t.certificate_file.empty() || !t.key_file.empty()) tls();
}

dialler::~dialler() = default;

tls_context& dialler::tls()
{
    if (!tls_) tls_ = std::make_unique<tls_context>(options_.tls);
    return *tls_;
}

std::uint64_t dialler::resumed() const noexcept
{
    return tls_ ? tls_->resumed() : 0;
}

// The resolver runs as a coroutine of its own, so that the connect limit can end it without touching the caller's cancellation.
awaitable<std::vector<ip_address>> dialler::look_up(const std::string& host, dial_stop& stop)
{
    asio::cancellation_signal end;
    std::vector<ip_address> found;
    std::exception_ptr trouble;
    {
        const dial_wait mark(stop, end);
        try {
            found = co_await stoppable(ex_, names_->resolve(host), end);
        } catch (...) {
            trouble = std::current_exception();
        }
    }
    const auto state = co_await asio::this_coro::cancellation_state;
    stop.check(state.cancelled());
    if (trouble) std::rethrow_exception(trouble);
    co_return found;
}

// To the host of `to`, which is the target's or the proxy's.
awaitable<std::unique_ptr<transport>> dialler::connect_host(const dial_target& target, const url& to, dial_stop& stop)
{
    connect_outcome out;
    if (target.via.how() == http_route::kind::unix_socket) {
        socket_home home(ex_, hub_);
        out = co_await connect_unix(std::move(home), times_, target.via.path(), stop);
    } else {
        addresses candidates;
        if (!is_literal(to)) candidates = co_await look_up(to.host(), stop);
        else if (const auto address = ip_address::parse(to.host())) candidates.push_back(*address);
        // What the name says now is what is connected to: nothing is asked twice.
        if (options_.allow_address && !target.via.proxied()) {
            std::erase_if(candidates, [&](const ip_address& a) {
                if (options_.allow_address(a)) return false;
                out.trouble += (out.trouble.empty() ? "" : "; ") + a.to_string() + ": not an address this client may connect to";
                return true;
            });
            if (candidates.empty()) throw transport_error(errc::connect_failed, target.label + ": cannot connect: " + out.trouble, false);
        }
        socket_home home(ex_, hub_);
        out = co_await connect_first(std::move(home), times_, std::move(candidates), to.port(), stop);
        if (!out.link) names_->forget(to.host());
    }
    if (!out.link) {
        const std::string whom = target.via.proxied() ? ": cannot connect to the proxy " + to.origin() + ": " : ": cannot connect: ";
        throw transport_error(errc::connect_failed, target.label + whom + out.trouble, true, out.cause);
    }
    co_return make_plain_transport(std::move(out.link));
}

awaitable<void> dialler::shake_hands(transport& wire, std::string label, dial_stop& stop)
{
    for (;;) {
        const io_result step = wire.handshake();
        if (step.status == io_status::ok) break;
        if (step.status != io_status::would_block) {
            const std::string why = wire.failure_text();
            throw transport_error(errc::tls_failed, label + (why.empty() ? step.error.message() : why), step.error.failed(), step.error);
        }
        stop.in_handshake = true;
        {
            const dial_wait mark(stop, wire);
            error_code ignored;
            co_await wire.ready(step.wanted, ignored);
        }
        const auto state = co_await asio::this_coro::cancellation_state;
        stop.check(state.cancelled());
    }
    stop.in_handshake = false;
}

awaitable<void> dialler::tunnel(transport& wire, const dial_target& target, dial_stop& stop)
{
    const std::string head = connect_request(target);
    std::string answer;
    // As after HEAD, whatever the head says of a body: what follows a success is the tunnel (RFC 9110, section 9.3.6).
    response_reader reader(largest_answer, true);
    std::size_t sent = 0;
    for (;;) {
        std::array<char, 1024> buffer;
        const bool sending = sent < head.size();
        const io_result r = sending ? wire.try_write(std::string_view(head).substr(sent), {}) : wire.try_read(buffer.data(), buffer.size());
        if (r.status == io_status::ok) {
            if (sending) {
                sent += r.bytes;
                continue;
            }
            answer.append(buffer.data(), r.bytes);
            const response_reader::outcome o = reader.feed(answer.data(), answer.size());
            answer.erase(0, o.consumed);
            if (!reader.head_done() && !reader.failed()) continue;
            judge_answer(reader, !answer.empty(), target);
            break;
        }
        if (r.status != io_status::would_block) {
            const std::string why = r.error ? r.error.message() : wire.failure_text();
            refuse(target, "broke the connection off" + (why.empty() ? "" : ": " + why), true, r.error);
        }
        {
            const dial_wait mark(stop, wire);
            error_code ignored;
            co_await wire.ready(r.wanted, ignored);
        }
        const auto state = co_await asio::this_coro::cancellation_state;
        stop.check(state.cancelled());
    }
}

awaitable<std::unique_ptr<transport>> dialler::dial(const dial_target& target, dial_stop& stop)
{
    const url& to = target.to;
    const bool proxied = target.via.proxied();
    const url& first = proxied ? target.via.at() : to;
    std::unique_ptr<transport> wire = co_await connect_host(target, first, stop);
    if (proxied && first.tls()) {
        wire = tls().wrap(std::move(wire), first.host(), first.port(), is_literal(first));
        co_await shake_hands(*wire, target.label + ": TLS to the proxy " + first.origin() + ": ", stop);
    }
    if (proxied && (to.tls() || target.always_tunnel)) co_await tunnel(*wire, target, stop);
    if (to.tls()) {
        wire = tls().wrap(std::move(wire), to.host(), to.port(), is_literal(to));
        co_await shake_hands(*wire, target.label + ": TLS: ", stop);
    }
    co_return wire;
}

}  // namespace reagent::inline v0::net_detail
