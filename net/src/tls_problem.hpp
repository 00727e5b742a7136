#pragma once
#include <openssl/x509_vfy.h>

#include <string>

namespace reagent::inline v0::net_detail {

/// What is wrong with the certificate that a verification has just refused, in words that name it.
std::string certificate_problem(X509_STORE_CTX* store);
/// What OpenSSL says of a handshake that failed, in ours where the reason is the protocol itself.
std::string handshake_problem(unsigned long openssl_error);

}  // namespace reagent::inline v0::net_detail
