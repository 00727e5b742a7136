#include "tls.hpp"

#include "tls_transport.hpp"

#include <reagent/base/error.hpp>
#include <reagent/net/tls_options.hpp>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace reagent::inline v0::net_detail {
namespace {

struct x509_free {
    void operator()(X509* p) const noexcept { X509_free(p); }
};
using x509_ptr = std::unique_ptr<X509, x509_free>;

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

// The certificates of peers, each once: ten thousand connections to one host would otherwise hold ten thousand parsed copies of its chain.
class known_certificates {
public:
    // What is verified, and what the session keeps, is ours of two that are equal byte by byte.
    void replace(X509_STORE_CTX* store)
    {
        STACK_OF(X509)* const sent = X509_STORE_CTX_get0_untrusted(store);
        for (int i = 0; sent && i < sk_X509_num(sent); ++i) {
            X509* const theirs = sk_X509_value(sent, i);
            const auto at = std::find_if(known_.begin(), known_.end(), [&](const x509_ptr& k) { return X509_cmp(k.get(), theirs) == 0; });
            if (at == known_.end()) {
                remember(theirs);
                continue;
            }
            X509_up_ref(at->get());
            sk_X509_set(sent, i, at->get());
            if (X509_STORE_CTX_get0_cert(store) == theirs) X509_STORE_CTX_set_cert(store, at->get());
            X509_free(theirs);
        }
    }

private:
    static constexpr std::size_t most = 64;
    void remember(X509* x)
    {
        X509_up_ref(x);
        if (known_.size() < most) known_.emplace_back(x);
        else known_[next_++ % most].reset(x);
    }
    std::vector<x509_ptr> known_;
    std::size_t next_ = 0;
};

int verify_shared(X509_STORE_CTX* store, void* known)
{
    static_cast<known_certificates*>(known)->replace(store);
    return X509_verify_cert(store);
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
    // One system call for the head of a record, its body and what follows, instead of two a record.
    SSL_CTX_set_read_ahead(ctx.get(), 1);
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
    known_certificates known;
    std::shared_ptr<tls_sessions> sessions = std::make_shared<tls_sessions>();
};

tls_context::tls_context(const tls_options& options) : impl_(std::make_unique<impl>())
{
    impl_->ctx = make_context(TLS_client_method());
    SSL_CTX* ctx = impl_->ctx.get();
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, on_verify);
    SSL_CTX_set_cert_verify_callback(ctx, verify_shared, &impl_->known);
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
        // Neither certificates nor SNI know the dot that ends a whole name (RFC 6066, section 3).
        const std::string name = host.substr(0, host.size() - (host.ends_with('.') ? 1 : 0));
        SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        named = SSL_set1_host(ssl.get(), name.c_str()) == 1 && SSL_set_tlsext_host_name(ssl.get(), name.c_str()) == 1;
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

namespace {

// What a PEM option of a server says, be it a file or the text itself.
class pem_source {
public:
    // Exactly one of the two may be given. `option` is the name of the text; that of the file ends in `_file`.
    pem_source(std::string option, const std::string& file, std::string_view text)
        : whence_(file.empty() ? option : option + "_file"), file_(file)
    {
        if (!file.empty() && !text.empty()) throw config_error(option + ": it is given twice, as text and as " + option + "_file");
        bio_.reset(file.empty() ? BIO_new_mem_buf(text.data(), static_cast<int>(text.size())) : BIO_new_file(file.c_str(), "r"));
        if (!bio_) fail("it cannot be read");
    }
    BIO* bio() noexcept { return bio_.get(); }
    [[noreturn]] void fail(const std::string& what) const
    {
        const std::string why = take_ssl_error();
        throw config_error(whence_ + ": " + what + (file_.empty() ? "" : ": " + file_) + (why.empty() ? "" : ": " + why));
    }
    // The next certificate; null at the end.
    x509_ptr next()
    {
        x509_ptr found(PEM_read_bio_X509_AUX(bio(), nullptr, no_password, nullptr));
        if (found) return found;
        if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) fail("a certificate cannot be read");
        ERR_clear_error();
        return nullptr;
    }

private:
    struct bio_free {
        void operator()(BIO* b) const noexcept { BIO_free(b); }
    };
    std::string whence_, file_;
    std::unique_ptr<BIO, bio_free> bio_;
};

void show_identity(SSL_CTX* ctx, const tls_server_options& o)
{
    if (o.certificate_file.empty() && o.certificate.empty()) throw config_error("tls.certificate_file: a server must have a certificate");
    if (o.key_file.empty() && o.key.empty()) throw config_error("tls.key_file: a server must have the key of its certificate");
    pem_source chain("tls.certificate", o.certificate_file, o.certificate);
    const x509_ptr own = chain.next();
    if (!own) chain.fail("there is no certificate in it");
    if (SSL_CTX_use_certificate(ctx, own.get()) != 1) chain.fail("the certificate cannot be used");
    while (const x509_ptr more = chain.next())
        if (SSL_CTX_add1_chain_cert(ctx, more.get()) != 1) chain.fail("an intermediate certificate cannot be used");
    pem_source key("tls.key", o.key_file, o.key.reveal());
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> read(PEM_read_bio_PrivateKey(key.bio(), nullptr, no_password, nullptr), &EVP_PKEY_free);
    if (!read) key.fail("there is no unencrypted key in it");
    if (SSL_CTX_use_PrivateKey(ctx, read.get()) != 1) key.fail("it is not the key of the certificate");
}

// Whether clients are to be asked.
bool trust_clients(SSL_CTX* ctx, const std::string& file, const std::string& text)
{
    if (file.empty() && text.empty()) return false;
    for (const bool from_file : {true, false}) {
        if ((from_file ? file : text).empty()) continue;
        pem_source roots("tls.client_ca", from_file ? file : std::string(), from_file ? std::string_view() : std::string_view(text));
        int n = 0;
        for (; const x509_ptr root = roots.next(); ++n)
            if (X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), root.get()) != 1 || SSL_CTX_add_client_CA(ctx, root.get()) != 1)
                roots.fail("a certificate cannot be used");
        if (n == 0) roots.fail("there is no certificate in it");
    }
    return true;
}

}  // namespace

struct tls_server_context::impl {
    ctx_ptr ctx;
    std::shared_ptr<tls_sessions> counts = std::make_shared<tls_sessions>();  // holds no session: tickets do
};

tls_server_context::tls_server_context(const tls_server_options& options) : impl_(std::make_unique<impl>())
{
    impl_->ctx = make_context(TLS_server_method());
    SSL_CTX* ctx = impl_->ctx.get();
    show_identity(ctx, options);
    // Tickets hold the session; a server keeps none.
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    constexpr std::array<unsigned char, 8> id = {'r', 'e', 'a', 'g', 'e', 'n', 't', '1'};
    SSL_CTX_set_session_id_context(ctx, id.data(), id.size());
    if (trust_clients(ctx, options.client_ca_file, options.client_ca))
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | (options.client_certificate_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), on_verify);
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
    return make_tls_transport(std::move(inner), std::move(ssl), impl_->counts, {});
}

std::uint64_t tls_server_context::resumed() const noexcept
{
    return impl_->counts->resumed;
}

}  // namespace reagent::inline v0::net_detail
