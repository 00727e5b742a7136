#include "tls_transport.hpp"

#include "tls_problem.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>

#include <array>
#include <cstring>
#include <new>
#include <optional>

namespace reagent::inline v0::net_detail {
namespace {

// What somebody left in OpenSSL's queue would be taken for ours. To look is cheaper than to clear.
void clear_errors() noexcept
{
    if (ERR_peek_error() != 0) ERR_clear_error();
}

struct method_free {
    void operator()(BIO_METHOD* p) const noexcept { BIO_meth_free(p); }
};

// Below OpenSSL: another transport, and what it said last.
struct lower_state {
    transport* wire = nullptr;
    direction wanted = direction::read;
    error_code error;
    std::string text;
    bool at_end = false;
    bool dry = false;  // the last read has found all there was
};

lower_state& state_of(BIO* b) noexcept
{
    return *static_cast<lower_state*>(BIO_get_data(b));
}

// Whether to try again later; the rest is remembered.
bool blocked(lower_state& s, const io_result& r)
{
    if (r.status == io_status::would_block) {
        s.wanted = r.wanted;
        return true;
    }
    if (r.status == io_status::failed) {
        s.error = r.error;
        s.text = s.wire->failure_text();
    } else {
        s.at_end = true;
    }
    return false;
}

int lower_read(BIO* b, char* to, int n)
{
    BIO_clear_retry_flags(b);
    lower_state& s = state_of(b);
    const io_result r = s.wire->try_read(to, static_cast<std::size_t>(n));
    s.dry = !r.more && r.bytes < static_cast<std::size_t>(n);
    if (r.status == io_status::ok) return static_cast<int>(r.bytes);
    if (blocked(s, r)) BIO_set_retry_read(b);
    return r.status == io_status::closed || r.status == io_status::truncated ? 0 : -1;
}

int lower_write(BIO* b, const char* from, int n)
{
    BIO_clear_retry_flags(b);
    lower_state& s = state_of(b);
    const io_result r = s.wire->try_write({from, static_cast<std::size_t>(n)}, {});
    if (r.status == io_status::ok) return static_cast<int>(r.bytes);
    if (blocked(s, r)) BIO_set_retry_write(b);
    return -1;
}

long lower_control(BIO* b, int command, long, void*)
{
    if (command == BIO_CTRL_FLUSH) return 1;
    if (command == BIO_CTRL_EOF) return state_of(b).at_end ? 1 : 0;
    return 0;
}

int lower_created(BIO* b)
{
    BIO_set_init(b, 1);
    return 1;
}

// One for the process: OpenSSL hands out few type numbers. Constant after construction.
const BIO_METHOD* lower_method()
{
    static const std::unique_ptr<BIO_METHOD, method_free> method = [] {
        std::unique_ptr<BIO_METHOD, method_free> m(BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "reagent transport"));
        if (!m) throw std::bad_alloc();
        BIO_meth_set_read(m.get(), lower_read);
        BIO_meth_set_write(m.get(), lower_write);
        BIO_meth_set_ctrl(m.get(), lower_control);
        BIO_meth_set_create(m.get(), lower_created);
        return m;
    }();
    return method.get();
}

class tls_transport final : public transport, public tls_peer {
public:
    tls_transport(std::unique_ptr<transport> inner, ssl_ptr ssl, std::shared_ptr<tls_sessions> sessions, std::string key)
        : inner_(std::move(inner)), ssl_(std::move(ssl)), sessions_(std::move(sessions)), key_(std::move(key))
    {
        BIO* bio = ssl_ ? BIO_new(lower_method()) : nullptr;
        if (!bio) throw std::bad_alloc();
        lower_.wire = inner_.get();
        BIO_set_data(bio, &lower_);
        SSL_set_bio(ssl_.get(), bio, bio);
        SSL_set_app_data(ssl_.get(), static_cast<tls_peer*>(this));
    }

    void refused(X509_STORE_CTX* store) override { failure_ = "certificate verify failed: " + certificate_problem(store); }
    void ticket(SSL_SESSION* session) override
    {
        if (sessions_) sessions_->keep(key_, session);
    }

    io_result handshake() override
    {
        clear_errors();
        const int status = SSL_do_handshake(ssl_.get());
        io_result r = judge(status);
        if (r.status == io_status::ok) {
            if (sessions_ && SSL_session_reused(ssl_.get())) ++sessions_->resumed;
            return r;
        }
        if (r.status == io_status::would_block) return r;
        if (r.status != io_status::failed && failure_.empty()) failure_ = "the peer closed the connection during the handshake";
        r.status = io_status::failed;
        return r;
    }

    io_result try_read(char* to, std::size_t n) override
    {
        io_result r;
        if (later_) {
            r = *later_;
            later_.reset();
            return r;
        }
        // Several records to a readiness: until the socket is known to be dry, or the buffer is full.
        std::size_t total = 0;
        while (total < n) {
            clear_errors();
            std::size_t got = 0;
            const int status = SSL_read_ex(ssl_.get(), to + total, n - total, &got);
            if (status == 1) {
                total += got;
                if (lower_.dry && SSL_has_pending(ssl_.get()) == 0) break;
                continue;
            }
            r = judge(status);
            if (total == 0) return r;
            if (r.status != io_status::would_block) later_ = r;
            break;
        }
        r.status = io_status::ok;
        r.bytes = total;
        r.more = later_.has_value();
        return r;
    }

    io_result try_write(std::string_view a, std::string_view b) override
    {
        // Head and small body go out as one record; after `would_block` the same bytes come again, as OpenSSL wants it.
        constexpr std::size_t record = 16 * 1024;
        std::array<char, record> joined;
        io_result r;
        std::size_t total = 0;
        while (total < a.size() + b.size()) {
            std::string_view part = total < a.size() ? a.substr(total) : b.substr(total - a.size());
            if (total < a.size() && part.size() < record && !b.empty()) {
                const std::size_t more = std::min(b.size(), record - part.size());
                std::memcpy(joined.data(), part.data(), part.size());
                std::memcpy(joined.data() + part.size(), b.data(), more);
                part = std::string_view(joined.data(), part.size() + more);
            }
            clear_errors();
            std::size_t sent = 0;
            const int status = SSL_write_ex(ssl_.get(), part.data(), part.size(), &sent);
            if (status != 1) {
                r = judge(status);
                if (total == 0) return r;
                break;  // what failed is met again by the next try
            }
            total += sent;
        }
        r.status = io_status::ok;
        r.bytes = total;
        return r;
    }

    peeked peek() noexcept override
    {
        if (later_) return peeked::ended;
        if (SSL_has_pending(ssl_.get()) == 0) {
            const peeked below = inner_->peek();
            if (below != peeked::bytes) return below;
        }
        // Bytes of TLS itself, such as session tickets, are nobody's.
        clear_errors();
        char byte = 0;
        std::size_t n = 0;
        const int status = SSL_peek_ex(ssl_.get(), &byte, 1, &n);
        if (status == 1) return peeked::bytes;
        return SSL_get_error(ssl_.get(), status) == SSL_ERROR_WANT_READ ? peeked::quiet : peeked::ended;
    }

    void farewell() noexcept override
    {
        clear_errors();
        if (SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
        clear_errors();
        inner_->farewell();
    }

    std::string failure_text() const override { return failure_; }
    awaitable<void> ready(direction d, error_code& ec) override { return inner_->ready(d, ec); }
    awaitable<void> ready_either(error_code& ec) override { return inner_->ready_either(ec); }
    bool at_turn_end(turn_task& task) override { return inner_->at_turn_end(task); }
    void when_ready(direction d, ready_handler handler) override { inner_->when_ready(d, std::move(handler)); }
    void cancel() noexcept override { inner_->cancel(); }

private:
    io_result judge(int status)
    {
        io_result r;
        switch (SSL_get_error(ssl_.get(), status)) {
        case SSL_ERROR_NONE: r.status = io_status::ok; break;
        case SSL_ERROR_WANT_READ:
        case SSL_ERROR_WANT_WRITE: r.wanted = lower_.wanted; break;
        case SSL_ERROR_ZERO_RETURN: r.status = io_status::closed; break;
        default: {
            const bool cut = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
            const std::string text = take_ssl_error();
            r.status = cut || lower_.at_end ? io_status::truncated : io_status::failed;
            r.error = lower_.error;
            if (failure_.empty() && !cut) failure_ = lower_.text.empty() ? text : lower_.text;
            break;
        }
        }
        return r;
    }

    std::unique_ptr<transport> inner_;
    lower_state lower_;
    ssl_ptr ssl_;
    std::optional<io_result> later_;  // found behind bytes that were handed out first
    std::string failure_;
    std::shared_ptr<tls_sessions> sessions_;
    std::string key_;
};

}  // namespace

std::string take_ssl_error()
{
    const unsigned long e = ERR_get_error();
    ERR_clear_error();
    return handshake_problem(e);
}

std::unique_ptr<transport> make_tls_transport(std::unique_ptr<transport> inner, ssl_ptr ssl, std::shared_ptr<tls_sessions> sessions, std::string key)
{
    return std::make_unique<tls_transport>(std::move(inner), std::move(ssl), std::move(sessions), std::move(key));
}

}  // namespace reagent::inline v0::net_detail
