// A server's bytes through the whole WebSocket client: the answer to its handshake, or the frames behind a good one. No bytes break the client, any cut of them
// gives the same messages, what it sends is masked and well-formed, and nothing is left when it ends.
#include "memory_transport.hpp"
#include "websocket_frames.hpp"
#include "websocket_handshake.hpp"
#include "websocket_impl.hpp"

#include <reagent/base/utf8.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

namespace {

using namespace reagent;

constexpr std::size_t message_max = 256;

void require(bool holds, int line = __builtin_LINE())
{
    if (holds) return;
    std::fprintf(stderr, "the requirement of line %d does not hold\n", line);
    std::abort();
}

/// Time that moves when told, and one timer.
class hand_clock final : public clock {
public:
    steady_time now() const noexcept override { return now_; }
    system_time wall() const noexcept override { return {}; }
    std::unique_ptr<clock_timer> make_timer(any_io_executor, std::function<void()> fire) override
    {
        fire_ = std::move(fire);
        return std::make_unique<timer>(*this);
    }
    void advance(duration d)
    {
        now_ += d;
        if (due_ > now_) return;
        due_ = steady_time::max();
        fire_();
    }

private:
    struct timer final : clock_timer {
        explicit timer(hand_clock& c) : owner(c) {}
        void arm(steady_time when) override { owner.due_ = when; }
        void disarm() noexcept override { owner.due_ = steady_time::max(); }
        hand_clock& owner;
    };
    steady_time now_{std::chrono::hours(1)}, due_ = steady_time::max();
    std::function<void()> fire_;
};

struct bench {
    asio::io_context context;
    std::shared_ptr<hand_clock> time = std::make_shared<hand_clock>();
    std::shared_ptr<http_client::impl> client = std::make_shared<http_client::impl>(context.get_executor(), options());
    url to = websocket_url("ws://peer.test/");
    http_client_options options() const
    {
        http_client_options o;
        o.clock = time;
        return o;
    }
};

bench& the_bench()
{
    static bench b;
    return b;
}

struct plan {
    bool handshake = false;  // the bytes are the answer to the handshake
    bool ends = false;       // the peer ends behind its bytes; else time passes
    bool busy = false;       // the client sends, pings and closes meanwhile
    std::size_t room = 64 * 1024;
    int read = 1000;         // messages read before the client says goodbye
};

struct outcome {
    std::string text;
    bool done = false;
};

awaitable<void> talk(websocket& ws, std::string* seen)
{
    try {
        co_await ws.send_text("to be sent");
        co_await ws.ping("p");
        co_await ws.send_binary(std::string(200, 'b'));
        const bool proper = co_await ws.close(1000, "done");
        *seen += proper ? "proper" : "alone";
    } catch (const boost::system::system_error&) {
        *seen += "failed";
    }
}

awaitable<void> converse(std::unique_ptr<net_detail::transport> wire, plan p, outcome* out)
{
    websocket_options o;
    o.protocols = {"a", "b"};
    o.message_max = message_max;
    o.max_head = 1024;
    o.random = [] { return std::uint64_t(0); };
    o.header_lines = "X-Asks: fuzz\r\n";
    bench& b = the_bench();
    net_detail::check_websocket_options(b.to, o);
    websocket ws = co_await net_detail::upgrade(b.client, std::move(wire), b.to, o);
    require(ws.is_open() && ws.head().status == 101);
    out->text += "open " + std::string(ws.protocol()) + "|";
    std::string talked;
    bool talking = p.busy;
    net_detail::parking talk_over(b.context.get_executor());
    if (p.busy) {
        asio::co_spawn(b.context, talk(ws, &talked), [&talking, &talk_over](const std::exception_ptr& e) {
            require(!e);
            talking = false;
            talk_over.wake();
        });
    }
    websocket_message m;
    std::exception_ptr failure;
    try {
        bool more = true;
        for (int n = 0; more && n < p.read; ++n) {
            more = co_await ws.read(m);
            if (!more) break;
            require(m.bytes.size() <= message_max && (m.kind == websocket_kind::binary || is_utf8(m.bytes)));
            out->text += (m.kind == websocket_kind::text ? "t" : "b") + m.bytes + "|";
        }
        if (more && !p.busy) {
            const bool proper = co_await ws.close();
            require(!ws.is_open());
            out->text += proper ? "proper " : "alone ";
        }
        out->text += "closed " + std::to_string(ws.close_code()) + std::string(ws.close_reason());
        require(is_utf8(ws.close_reason()));
    } catch (...) {
        failure = std::current_exception();
    }
    while (talking) co_await talk_over.wait();
    if (failure) std::rethrow_exception(failure);
}

// Runs `bytes` in pieces that `steer` chooses; empty means all at once.
outcome run(std::string bytes, std::string_view steer, const plan& p)
{
    bench& b = the_bench();
    const std::string key = base64_encode(std::string(16, '\0'));
    for (std::size_t at = bytes.find('$'); p.handshake && at != std::string::npos; at = bytes.find('$')) bytes.replace(at, 1, net_tests::accept_for(key));
    if (!p.handshake) bytes.insert(0, net_tests::consent_for(key));
    outcome out;
    std::string seen;
    {
        auto ends = net_tests::memory_transport::pair(b.context.get_executor(), p.room);
        net_tests::memory_transport* const server = ends.second.get();
        asio::co_spawn(b.context, converse(std::move(ends.first), p, &out), [&out](const std::exception_ptr& e) {
            out.done = true;
            if (!e) return;
            try {
                std::rethrow_exception(e);
            } catch (const websocket_error& w) {
                out.text += w.code().message() + std::to_string(w.status());
                require(w.body().size() <= websocket_options::max_refusal);
            } catch (const timeout_error& t) {
                out.text += t.code().message();
            } catch (const boost::system::system_error& s) {
                require(s.code() == errc::closed);
            }
        });
        const auto turn = [&] {
            std::size_t handlers = 0;
            for (bool busy = true; busy;) {
                if (b.context.stopped()) b.context.restart();
                busy = b.context.poll_one() != 0;
                require(++handlers < 100'000);  // for ever would be a fault of ours
                char buffer[512];
                for (;;) {
                    const net_detail::io_result r = server->try_read(buffer, sizeof buffer);
                    if (r.status != net_detail::io_status::ok) break;
                    seen.append(buffer, r.bytes);
                    busy = true;
                }
            }
        };
        turn();
        std::size_t step = 0;
        std::string_view rest = bytes;
        while (!rest.empty() && !out.done) {
            const std::size_t size = steer.empty() ? rest.size() : 1 + static_cast<unsigned char>(steer[step++ % steer.size()]) % 41;
            const net_detail::io_result w = server->try_write(rest.substr(0, size), {});
            if (w.status != net_detail::io_status::ok) break;  // it has gone, or does not read any more
            rest.remove_prefix(w.bytes);
            turn();
        }
        if (p.ends) {
            turn();
            server->finish();
        }
        for (int i = 0; i < 12 && !out.done; ++i) {
            turn();
            if (!out.done) b.time->advance(std::chrono::seconds(31));
        }
        turn();
        require(out.done && server->peek() == net_detail::peeked::ended);
    }
    b.context.restart();
    b.context.poll();
    require(b.context.stopped());  // out of work
    require(b.client->deadlines.size() == 0);
    const std::size_t end = seen.find("\r\n\r\n");
    require(end != std::string::npos);
    int goodbyes = 0;
    for (const net_tests::seen_frame& f : net_tests::frames_of(std::string_view(seen).substr(end + 4))) {
        require(f.masked && f.fin && goodbyes == 0);
        goodbyes += f.opcode == 8 ? 1 : 0;
        require(f.opcode == 1 || f.opcode == 2 || f.opcode == 8 || f.opcode == 9 || f.opcode == 10);
    }
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const std::string_view steer = all.substr(0, std::min<std::size_t>(size, 4));
    const std::string bytes(all.substr(steer.size()));
    const unsigned mode = steer.empty() ? 0 : static_cast<unsigned char>(steer[0]);
    plan p;
    p.handshake = (mode & 1) != 0;
    p.ends = (mode & 2) != 0;
    p.busy = (mode & 4) != 0;
    if ((mode & 8) != 0) p.room = 24;
    if ((mode & 16) != 0) p.read = 1;
    const outcome whole = run(bytes, {}, p);
    const outcome cut = run(bytes, steer.size() == 4 ? steer.substr(1) : std::string_view("\0", 1), p);
    // Who is first matters where both sides speak.
    if (!p.busy && p.read > 1) require(whole.text == cut.text);
    return 0;
}
