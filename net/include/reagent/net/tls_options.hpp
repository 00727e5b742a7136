#pragma once
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

/// What a server shows and whom it lets in.
class tls_server_options {
public:
    tls_server_options() = default;
    std::string certificate_file;  ///< PEM, the server's first, then its intermediates
    std::string key_file;          ///< PEM, not encrypted
    std::string client_ca_file;    ///< when set, a client must show a certificate signed by one of these
};

}  // namespace reagent::inline v0
