#include "tls_problem.hpp"

#include <reagent/base/untrusted_text.hpp>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <system_error>

namespace reagent::inline v0::net_detail {
namespace {

constexpr std::size_t longest_name = 200;

/// Text that OpenSSL prints.
class printed {
public:
    printed() : bio_(BIO_new(BIO_s_mem()), &BIO_free) {}
    BIO* bio() noexcept { return bio_.get(); }
    std::string text() const
    {
        char* data = nullptr;
        const long n = bio_ ? BIO_get_mem_data(bio_.get(), &data) : 0;
        return n > 0 ? untrusted_text({data, static_cast<std::size_t>(n)}, longest_name) : std::string();
    }

private:
    std::unique_ptr<BIO, int (*)(BIO*)> bio_;
};

std::string text_of(const X509_NAME* name)
{
    printed p;
    X509_NAME_print_ex(p.bio(), name, 0, XN_FLAG_RFC2253);
    return "\"" + p.text() + "\"";
}

std::string text_of(const ASN1_TIME* time)
{
    printed p;
    ASN1_TIME_print(p.bio(), time);
    return p.text();
}

// The names a certificate is for, as far as they fit.
std::string names_of(const X509* certificate)
{
    const auto names = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
    if (!names) return "no name at all";
    printed p;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
        if (i > 0) BIO_puts(p.bio(), ", ");
        GENERAL_NAME_print(p.bio(), sk_GENERAL_NAME_value(names, i));
    }
    GENERAL_NAMES_free(names);
    return p.text();
}

}  // namespace

std::string certificate_problem(X509_STORE_CTX* store)
{
    const int what = X509_STORE_CTX_get_error(store);
    const X509* at = X509_STORE_CTX_get_current_cert(store);
    const std::string plain = X509_verify_cert_error_string(what);
    if (!at) return plain;
    const bool leaf = X509_STORE_CTX_get_error_depth(store) == 0;
    const std::string whose = leaf ? "the peer's certificate" : "the certificate of " + text_of(X509_get_subject_name(at));
    switch (what) {
    case X509_V_ERR_CERT_HAS_EXPIRED: return whose + " has expired: it was valid until " + text_of(X509_get0_notAfter(at));
    case X509_V_ERR_CERT_NOT_YET_VALID: return whose + " is not yet valid: it will be from " + text_of(X509_get0_notBefore(at));
    case X509_V_ERR_HOSTNAME_MISMATCH: return "hostname mismatch: the certificate is for " + names_of(at);
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return "IP address mismatch: the certificate is for " + names_of(at);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: return "a self-signed certificate that is not trusted: " + text_of(X509_get_subject_name(at));
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: return "the chain ends in a root that is not trusted: " + text_of(X509_get_subject_name(at));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: {
        const std::string issuer = text_of(X509_get_issuer_name(at));
        // Of a leaf alone nobody can tell which of the two it is.
        if (sk_X509_num(X509_STORE_CTX_get0_untrusted(store)) <= 1)
            return "the issuer of " + whose + " is unknown: the peer sent no intermediate certificate, or the root is not trusted: " + issuer;
        return "the chain leads to a root that is not trusted: " + issuer;
    }
    case X509_V_ERR_CA_MD_TOO_WEAK: return whose + " is signed with a weak digest: " + OBJ_nid2ln(X509_get_signature_nid(at));
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL: return whose + " has a key that is too small: " + std::to_string(EVP_PKEY_get_bits(X509_get0_pubkey(at))) + " bits";
    default: return whose + ": " + plain;
    }
}

std::string handshake_problem(unsigned long openssl_error)
{
    if (openssl_error == 0) return {};
    if (ERR_SYSTEM_ERROR(openssl_error)) return std::generic_category().message(ERR_GET_REASON(openssl_error));
    const char* reason = ERR_reason_error_string(openssl_error);
    const std::string plain = reason ? std::string(reason) : "error " + std::to_string(openssl_error);
    if (ERR_GET_LIB(openssl_error) != ERR_LIB_SSL) return plain;
    switch (ERR_GET_REASON(openssl_error)) {
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW: return "the peer speaks no TLS 1.2 or later (" + plain + ")";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST: return "the peer does not speak TLS (" + plain + ")";
    default: return plain;
    }
}

}  // namespace reagent::inline v0::net_detail
