#pragma once
#include <reagent/base/secret.hpp>

#include <string>

namespace reagent::inline v0 {

/// Whom a client trusts, and who it says it is. TLS 1.2 or later, chain and host name always verified.
/// A file that cannot be read is a `config_error` naming the option, at construction of the client.
class tls_options {
public:
    tls_options() = default;
    std::string ca_file;  ///< PEM bundle used besides the system store
    std::string ca_dir;   ///< directory of hashed certificates (`openssl rehash`), besides the system store
    /// The store of the system, which the environment moves: SSL_CERT_FILE names a bundle instead of the system's, SSL_CERT_DIR a directory of hashed
    /// certificates instead of the system's; each leaves the other in place. It is read with the first https request; a bad variable is a `config_error` then.
    bool system_store = true;
    std::string certificate_file;  ///< PEM, ours first, then its intermediates: shown to a server that asks for one
    std::string key_file;          ///< PEM, not encrypted, of the certificate
};

/// What a server shows and whom it lets in: TLS 1.2 or later, `http/1.1` where the client asks by ALPN. What cannot be used is a `config_error` naming the
/// option, the file and the problem, at construction of the server.
class tls_server_options {
public:
    tls_server_options() = default;
    std::string certificate_file;             ///< PEM, the server's first, then its intermediates
    std::string key_file;                     ///< PEM, not encrypted, of the certificate
    std::string certificate;                  ///< the PEM text itself, instead of `certificate_file`
    secret key;                               ///< the same, instead of `key_file`
    std::string client_ca_file;               ///< PEM: clients are asked for a certificate signed by one of these
    std::string client_ca;                    ///< the same as text, or more of them
    bool client_certificate_required = true;  ///< of clients that are asked; false lets in who shows none. One that is shown is verified in any case
};

}  // namespace reagent::inline v0
