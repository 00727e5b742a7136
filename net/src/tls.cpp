#include "tls.hpp"

#include <reagent/base/error.hpp>
#include <reagent/net/http_client.hpp>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

namespace reagent::inline v0::net_detail {
namespace {

struct ctx_free {
    void operator()(SSL_CTX* p) const noexcept { SSL_CTX_free(p); }
};
struct ssl_free {
    void operator()(SSL* p) const noexcept { SSL_free(p); }
};
struct method_free {
    void operator()(BIO_METHOD* p) const noexcept { BIO_meth_free(p); }
};

// The oldest entry of OpenSSL's queue is the cause; the queue is left empty.
std::string take_ssl_error()
{
    const unsigned long e = ERR_get_error();
    ERR_clear_error();
    if (e == 0) return {};
    const char* reason = ERR_reason_error_string(e);
    return reason ? std::string(reason) : "error " + std::to_string(e);
}

// Below OpenSSL: the socket, with MSG_NOSIGNAL, so that no signal disposition matters.
struct socket_state {
    int fd = -1;
    int last_errno = 0;
    bool at_end = false;
};

socket_state& state_of(BIO* b) noexcept { return *static_cast<socket_state*>(BIO_get_data(b)); }

int socket_read(BIO* b, char* to, int n)
{
    BIO_clear_retry_flags(b);
    socket_state& s = state_of(b);
    ssize_t got = 0;
    do got = ::recv(s.fd, to, static_cast<std::size_t>(n), 0);
    while (got < 0 && errno == EINTR);
    if (got == 0) s.at_end = true;
    if (got < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) BIO_set_retry_read(b);
        else s.last_errno = errno;
    }
    return static_cast<int>(got);
}

int socket_write(BIO* b, const char* from, int n)
{
    BIO_clear_retry_flags(b);
    socket_state& s = state_of(b);
    ssize_t sent = 0;
    do sent = ::send(s.fd, from, static_cast<std::size_t>(n), MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) BIO_set_retry_write(b);
        else s.last_errno = errno;
    }
    return static_cast<int>(sent);
}

long socket_control(BIO* b, int command, long, void*)
{
    if (command == BIO_CTRL_FLUSH) return 1;
    if (command == BIO_CTRL_EOF) return state_of(b).at_end ? 1 : 0;
    return 0;
}

int socket_created(BIO* b)
{
    BIO_set_init(b, 1);
    return 1;
}

// One for the process: OpenSSL hands out few type numbers. Constant after construction.
const BIO_METHOD* socket_method()
{
    static const std::unique_ptr<BIO_METHOD, method_free> method = [] {
        std::unique_ptr<BIO_METHOD, method_free> m(BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "reagent socket"));
        if (!m) throw std::bad_alloc();
        BIO_meth_set_read(m.get(), socket_read);
        BIO_meth_set_write(m.get(), socket_write);
        BIO_meth_set_ctrl(m.get(), socket_control);
        BIO_meth_set_create(m.get(), socket_created);
        return m;
    }();
    return method.get();
}

class tls_transport final : public transport {
public:
    tls_transport(std::unique_ptr<socket_link> link, SSL_CTX* ctx, const std::string& host, bool literal)
        : link_(std::move(link)), ssl_(SSL_new(ctx))
    {
        BIO* bio = ssl_ ? BIO_new(socket_method()) : nullptr;
        if (!bio) throw std::bad_alloc();
        socket_.fd = link_->fd();
        BIO_set_data(bio, &socket_);
        SSL_set_bio(ssl_.get(), bio, bio);
        SSL_set_connect_state(ssl_.get());
        bool named = false;
        if (literal) {
            named = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) == 1;
        } else {
            SSL_set_hostflags(ssl_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
            named = SSL_set1_host(ssl_.get(), host.c_str()) == 1 && SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) == 1;
        }
        if (!named) throw error(errc::tls_failed, "[http] the host name cannot be verified by TLS");
    }

    io_result handshake() override
    {
        ERR_clear_error();
        const int status = SSL_do_handshake(ssl_.get());
        io_result r = judge(status);
        if (r.status == io_status::ok) return r;
        if (r.status == io_status::would_block) return r;
        const long verdict = SSL_get_verify_result(ssl_.get());
        if (verdict != X509_V_OK) failure_ = std::string("certificate verify failed: ") + X509_verify_cert_error_string(verdict);
        else if (r.status != io_status::failed) failure_ = "the peer closed the connection during the handshake";
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
        // Several records to a readiness: until the socket is dry or the buffer is full.
        std::size_t total = 0;
        while (total < n) {
            ERR_clear_error();
            std::size_t got = 0;
            const int status = SSL_read_ex(ssl_.get(), to + total, n - total, &got);
            if (status == 1) {
                total += got;
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
            ERR_clear_error();
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

    bool stale() noexcept override
    {
        if (later_) return true;
        char byte = 0;
        const ssize_t got = ::recv(socket_.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (got == 0) return true;
        if (got < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
        // Bytes of TLS itself, such as session tickets, do no harm; anything else does.
        ERR_clear_error();
        std::size_t n = 0;
        const int status = SSL_read_ex(ssl_.get(), &byte, 1, &n);
        return status == 1 || SSL_get_error(ssl_.get(), status) != SSL_ERROR_WANT_READ;
    }

    void farewell() noexcept override
    {
        ERR_clear_error();
        if (SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
        ERR_clear_error();
    }

    std::string failure_text() const override { return failure_; }
    awaitable<void> ready(direction d, error_code& ec) override { return link_->ready(d, ec); }
    awaitable<void> ready_either(error_code& ec) override { return link_->ready_either(ec); }
    void when_ready(direction d, asio::any_completion_handler<void(error_code)> handler) override { link_->when_ready(d, std::move(handler)); }
    void cancel() noexcept override { link_->cancel(); }

private:
    io_result judge(int status)
    {
        io_result r;
        switch (SSL_get_error(ssl_.get(), status)) {
        case SSL_ERROR_NONE: r.status = io_status::ok; break;
        case SSL_ERROR_WANT_READ: break;
        case SSL_ERROR_WANT_WRITE: r.wanted = direction::write; break;
        case SSL_ERROR_ZERO_RETURN: r.status = io_status::closed; break;
        default: {
            const bool cut = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
            const std::string text = take_ssl_error();
            r.status = cut || socket_.at_end ? io_status::truncated : io_status::failed;
            if (socket_.last_errno != 0) r.error = error_code(socket_.last_errno, boost::system::system_category());
            if (failure_.empty()) failure_ = text;
            break;
        }
        }
        return r;
    }

    std::unique_ptr<socket_link> link_;
    socket_state socket_;
    std::unique_ptr<SSL, ssl_free> ssl_;
    std::optional<io_result> later_;  // found behind bytes that were handed out first
    std::string failure_;
};

}  // namespace

struct tls_context::impl {
    std::unique_ptr<SSL_CTX, ctx_free> ctx;
};

tls_context::tls_context(const tls_options& options) : impl_(std::make_unique<impl>())
{
    ERR_clear_error();
    impl_->ctx.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX* ctx = impl_->ctx.get();
    if (!ctx) throw error(errc::tls_failed, "[http] OpenSSL cannot be set up: " + take_ssl_error());
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    constexpr std::array<unsigned char, 9> protocols = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
    SSL_CTX_set_alpn_protos(ctx, protocols.data(), protocols.size());
    if (options.system_store) SSL_CTX_set_default_verify_paths(ctx);
    if (!options.ca_file.empty() && SSL_CTX_load_verify_file(ctx, options.ca_file.c_str()) != 1)
        throw config_error("tls.ca_file: no certificate can be read from " + options.ca_file + ": " + take_ssl_error());
    if (!options.ca_dir.empty()) {
        // OpenSSL looks into the directory only when it needs a certificate, and then says nothing of its absence.
        struct stat info {};
        if (::stat(options.ca_dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) throw config_error("tls.ca_dir: not a directory: " + options.ca_dir);
        SSL_CTX_load_verify_dir(ctx, options.ca_dir.c_str());
    }
    ERR_clear_error();
}

tls_context::~tls_context() = default;

std::unique_ptr<transport> tls_context::wrap(std::unique_ptr<socket_link> link, const std::string& host, bool literal)
{
    return std::make_unique<tls_transport>(std::move(link), impl_->ctx.get(), host, literal);
}

}  // namespace reagent::inline v0::net_detail
