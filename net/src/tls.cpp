#include "tls.hpp"

#include "tls_transport.hpp"

#include <reagent/base/error.hpp>
#include <reagent/net/tls_options.hpp>

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <string_view>

namespace reagent::inline v0::net_detail {
namespace {

int on_verify(int fine, X509_STORE_CTX* store)
{
    if (fine) return 1;
    const auto* ssl = static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    tls_peer::of(ssl).refused(store);
    return 0;
}

int on_session(SSL* ssl, SSL_SESSION* session)
{
    tls_peer::of(ssl).ticket(session);
    return 0;  // the reference stays OpenSSL's
}

// A library asks nobody for a password.
int no_password(char*, int, int, void*)
{
    return -1;
}

bool is_directory(const std::string& path)
{
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

ctx_ptr make_context(const SSL_METHOD* method)
{
    ERR_clear_error();
    ctx_ptr ctx(SSL_CTX_new(method));
    if (!ctx) throw error(errc::tls_failed, "[http] OpenSSL cannot be set up: " + take_ssl_error());
    SSL_CTX_set_min_proto_version(ctx.get(), TLS1_2_VERSION);
    // Pinned, so that what a weak digest is does not depend on the machine's openssl.cnf.
    SSL_CTX_set_security_level(ctx.get(), 2);
    SSL_CTX_set_mode(ctx.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(ctx.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_default_passwd_cb(ctx.get(), no_password);
    return ctx;
}

void load_roots(SSL_CTX* ctx, const std::string& file, const std::string& key)
{
    if (SSL_CTX_load_verify_file(ctx, file.c_str()) != 1)
        throw config_error(key + ": no certificate can be read from " + file + ": " + take_ssl_error());
}

void load_identity(SSL_CTX* ctx, const std::string& certificate, const std::string& key)
{
    if (certificate.empty() && key.empty()) return;
    if (certificate.empty()) throw config_error("tls.certificate_file: tls.key_file is set, so this one must be");
    if (key.empty()) throw config_error("tls.key_file: tls.certificate_file is set, so this one must be");
    if (SSL_CTX_use_certificate_chain_file(ctx, certificate.c_str()) != 1)
        throw config_error("tls.certificate_file: no certificate can be read from " + certificate + ": " + take_ssl_error());
    // One that does not fit the certificate fails here, too.
    if (SSL_CTX_use_PrivateKey_file(ctx, key.c_str(), SSL_FILETYPE_PEM) != 1)
        throw config_error("tls.key_file: no key of the certificate can be read from " + key + ": " + take_ssl_error());
}

// OpenSSL says nothing of a variable that leads nowhere; every certificate would then be refused, and nobody would know why.
void load_system_store(SSL_CTX* ctx)
{
    if (const char* file = std::getenv("SSL_CERT_FILE"); file && *file) load_roots(ctx, file, "SSL_CERT_FILE");
    if (const char* list = std::getenv("SSL_CERT_DIR"); list && *list) {
        bool any = false;
        for (std::string_view rest = list; !rest.empty();) {
            const std::size_t end = std::min(rest.find(':'), rest.size());
            any = any || is_directory(std::string(rest.substr(0, end)));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        if (!any) throw config_error(std::string("SSL_CERT_DIR: not a directory: ") + list);
    }
    SSL_CTX_set_default_verify_paths(ctx);
}

}  // namespace

struct tls_context::impl {
    ctx_ptr ctx;
    std::shared_ptr<tls_sessions> sessions = std::make_shared<tls_sessions>();
};

tls_context::tls_context(const tls_options& options) : impl_(std::make_unique<impl>())
{
    impl_->ctx = make_context(TLS_client_method());
    SSL_CTX* ctx = impl_->ctx.get();
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, on_verify);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
    constexpr std::array<unsigned char, 9> protocols = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
    SSL_CTX_set_alpn_protos(ctx, protocols.data(), protocols.size());
    if (options.system_store) load_system_store(ctx);
    if (!options.ca_file.empty()) load_roots(ctx, options.ca_file, "tls.ca_file");
    if (!options.ca_dir.empty()) {
        // OpenSSL looks into the directory only when it needs a certificate, and then says nothing of its absence.
        if (!is_directory(options.ca_dir)) throw config_error("tls.ca_dir: not a directory: " + options.ca_dir);
        SSL_CTX_load_verify_dir(ctx, options.ca_dir.c_str());
    }
    load_identity(ctx, options.certificate_file, options.key_file);
    ERR_clear_error();
}

tls_context::~tls_context() = default;

std::unique_ptr<transport> tls_context::wrap(std::unique_ptr<transport> inner, const std::string& host, std::uint16_t port, bool literal)
{
    ssl_ptr ssl(SSL_new(impl_->ctx.get()));
    if (!ssl) throw std::bad_alloc();
    SSL_set_connect_state(ssl.get());
    bool named = false;
    if (literal) {
        named = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host.c_str()) == 1;
    } else {
        SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        named = SSL_set1_host(ssl.get(), host.c_str()) == 1 && SSL_set_tlsext_host_name(ssl.get(), host.c_str()) == 1;
    }
    if (!named) throw error(errc::tls_failed, "[http] the host name cannot be verified by TLS");
    std::string key = host + ":" + std::to_string(port);
    if (const session_ptr session = impl_->sessions->take(key)) SSL_set_session(ssl.get(), session.get());
    return make_tls_transport(std::move(inner), std::move(ssl), impl_->sessions, std::move(key));
}

std::uint64_t tls_context::resumed() const noexcept
{
    return impl_->sessions->resumed;
}

struct tls_server_context::impl {
    ctx_ptr ctx;
};

tls_server_context::tls_server_context(const tls_server_options& options) : impl_(std::make_unique<impl>())
{
    impl_->ctx = make_context(TLS_server_method());
    SSL_CTX* ctx = impl_->ctx.get();
    if (options.certificate_file.empty()) throw config_error("tls.certificate_file: a server must have a certificate");
    load_identity(ctx, options.certificate_file, options.key_file);
    // Tickets hold the session; a server keeps none.
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    constexpr std::array<unsigned char, 8> id = {'r', 'e', 'a', 'g', 'e', 'n', 't', '1'};
    SSL_CTX_set_session_id_context(ctx, id.data(), id.size());
    if (!options.client_ca_file.empty()) {
        load_roots(ctx, options.client_ca_file, "tls.client_ca_file");
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, on_verify);
        SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(options.client_ca_file.c_str()));
    }
    SSL_CTX_set_alpn_select_cb(
        ctx,
        [](SSL*, const unsigned char** out, unsigned char* size, const unsigned char* in, unsigned in_size, void*) {
            static constexpr std::array<unsigned char, 9> ours = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
            unsigned char* chosen = nullptr;
            if (SSL_select_next_proto(&chosen, size, ours.data(), ours.size(), in, in_size) != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_NOACK;
            *out = chosen;
            return SSL_TLSEXT_ERR_OK;
        },
        nullptr);
    ERR_clear_error();
}

tls_server_context::~tls_server_context() = default;

std::unique_ptr<transport> tls_server_context::wrap(std::unique_ptr<transport> inner)
{
    ssl_ptr ssl(SSL_new(impl_->ctx.get()));
    if (!ssl) throw std::bad_alloc();
    SSL_set_accept_state(ssl.get());
    return make_tls_transport(std::move(inner), std::move(ssl), nullptr, {});
}

}  // namespace reagent::inline v0::net_detail
