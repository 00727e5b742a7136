/// A TLS server of the tests: certificates made on the spot by the openssl program, one thread, one behaviour.
#pragma once
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace reagent::net_tests {

/// A directory that goes away with the object.
class scratch_directory {
public:
    scratch_directory()
    {
        std::string name = (std::filesystem::temp_directory_path() / "reagent-tls-XXXXXX").string();
        if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
        path_ = name;
    }
    scratch_directory(const scratch_directory&) = delete;
    scratch_directory& operator=(const scratch_directory&) = delete;
    ~scratch_directory() { std::filesystem::remove_all(path_); }
    std::string file(const std::string& name) const { return (path_ / name).string(); }
    std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

/// A root of our own and the certificates it signed: `good` for 127.0.0.1, localhost and api.test, `expired`, `future`, `weak` (SHA-1), `elsewhere` for
/// another host, `self` signed by itself, `stranger` signed by a root nobody knows, `client`. Signed by an intermediate: `chained` with it, `lonely` without
/// it, `reversed` with it behind the root, and `unknown` with an intermediate of the root nobody knows.
class certificates {
public:
    certificates()
    {
        run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout root.key -out root.pem -days 2 -subj '/CN=Test root'");
        run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout other.key -out other.pem -days 2 -subj '/CN=Other root'");
        const std::string local = "subjectAltName=DNS:localhost,DNS:api.test,IP:127.0.0.1";
        const std::string authority = "basicConstraints=critical,CA:TRUE";
        sign("good", local, "root", "-days 2");
        sign("elsewhere", "subjectAltName=DNS:elsewhere.test", "root", "-days 2");
        sign("stranger", local, "other", "-days 2");
        sign("client", "extendedKeyUsage=clientAuth", "root", "-days 2");
        sign("weak", local, "root", "-days 2 -sha1");
        sign("inter", authority, "root", "-days 2");
        sign("lonely", local, "inter", "-days 2");
        sign("otherinter", authority, "other", "-days 2");
        sign("unknown", local, "otherinter", "-days 2");
        run("cat lonely.pem inter.pem >chained.pem && cat lonely.pem root.pem inter.pem >reversed.pem && cat otherinter.pem >>unknown.pem");
        run("cp lonely.key chained.key && cp lonely.key reversed.key");
        run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout self.key -out self.pem -days 2 -subj '/CN=localhost' "
            "-addext '" +
            local + "'");
        // `openssl x509` cannot set a past end, `openssl ca` can.
        run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout expired.key -out expired.csr -subj '/CN=localhost'");
        run("mkdir -p ca && : > ca/index.txt && echo 01 > ca/serial && printf "
            "'[ca]\\ndefault_ca=d\\n[d]\\ndatabase=ca/index.txt\\nserial=ca/serial\\nnew_certs_dir=ca\\n"
            "default_md=sha256\\npolicy=p\\nx509_extensions=x\\n[p]\\ncommonName=supplied\\n[x]\\n" +
            local + "\\n' > ca.cnf");
        const std::string ca = "openssl ca -batch -config ca.cnf -cert root.pem -keyfile root.key -in expired.csr -notext";
        run(ca + " -out expired.pem -startdate 20200101000000Z -enddate 20200102000000Z && : > ca/index.txt");
        run(ca + " -out future.pem -startdate 20900101000000Z -enddate 20910101000000Z && cp expired.key future.key");
    }
    std::string pem(const std::string& name) const { return directory_.file(name + ".pem"); }
    std::string key(const std::string& name) const { return directory_.file(name + ".key"); }
    std::string directory() const { return directory_.path(); }
    static const certificates& shared()
    {
        static const certificates c;
        return c;
    }

private:
    void sign(const std::string& name, const std::string& extension, const std::string& root, const std::string& validity)
    {
        run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout " + name + ".key -out " + name + ".csr -subj '/CN=" + name + "'");
        run("printf '%s' '" + extension + "' > " + name + ".ext");
        run("openssl x509 -req -in " + name + ".csr -CA " + root + ".pem -CAkey " + root + ".key -CAcreateserial -out " + name + ".pem " + validity +
            " -extfile " + name + ".ext");
    }
    void run(const std::string& command)
    {
        const std::string whole = "cd '" + directory_.path() + "' && (" + command + ") >>log 2>&1";
        if (std::system(whole.c_str()) != 0) throw std::runtime_error("failed: " + command);
    }
    scratch_directory directory_;
};

/// What a server does besides.
struct tls_extras {
    std::string client_root = {};   ///< asks the client for a certificate of this root
    std::string proxy_answer = {};  ///< is a proxy first: reads a request head, gives this answer, and then speaks for the server itself
    std::uint16_t forward_to = 0;   ///< is a proxy reached by TLS: passes what follows CONNECT to this port and back
};

enum class tls_end {
    keep,      ///< further requests on the same connection
    shutdown,  ///< close_notify, then FIN
    cut,       ///< FIN without close_notify
    hang_up,   ///< FIN after the handshake, RST when the client goes on all the same
    notify,    ///< close_notify in one segment with the answer; TCP stays open until the client ends it
};

/// Answers the requests in order, the last answer repeated.
class tls_server {
public:
    tls_server(const std::string& certificate, std::string response, tls_end end, int max_version = TLS1_3_VERSION, tls_extras extras = {})
        : tls_server(certificate, std::vector<std::string>{std::move(response)}, end, max_version, std::move(extras))
    {}
    tls_server(const std::string& certificate, std::vector<std::string> responses, tls_end end, int max_version = TLS1_3_VERSION, tls_extras extras = {})
        : responses_(std::move(responses)), extras_(std::move(extras)), end_(end), context_(SSL_CTX_new(TLS_server_method()))
    {
        const certificates& c = certificates::shared();
        // Any of them would take a session of another.
        unsigned char ticket_keys[80] = {};
        SSL_CTX_set_tlsext_ticket_keys(context_, ticket_keys, sizeof ticket_keys);
        SSL_CTX_set_security_level(context_, 0);  // what is refused, the client refuses
        SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
        SSL_CTX_set_max_proto_version(context_, max_version);
        if (max_version < TLS1_2_VERSION) SSL_CTX_set_cipher_list(context_, "ALL:@SECLEVEL=0");
        if (SSL_CTX_use_certificate_chain_file(context_, c.pem(certificate).c_str()) != 1 ||
            SSL_CTX_use_PrivateKey_file(context_, c.key(certificate).c_str(), SSL_FILETYPE_PEM) != 1)
            throw std::runtime_error("certificate");
        if (!extras_.client_root.empty()) {
            SSL_CTX_load_verify_locations(context_, c.pem(extras_.client_root).c_str(), nullptr);
            SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
            SSL_CTX_set_session_id_context(context_, reinterpret_cast<const unsigned char*>("t"), 1);
        }
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        if (::bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(listener_, 64) != 0 ||
            ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0)
            throw std::runtime_error("listen");
        port_ = ntohs(at.sin_port);
        thread_ = std::thread([this] { serve(); });
    }
    tls_server(const tls_server&) = delete;
    tls_server& operator=(const tls_server&) = delete;
    ~tls_server()
    {
        ::shutdown(listener_, SHUT_RDWR);
        {
            const std::lock_guard lock(mutex_);
            if (connection_ >= 0) ::shutdown(connection_, SHUT_RDWR);
        }
        thread_.join();
        ::close(listener_);
        SSL_CTX_free(context_);
    }
    std::uint16_t port() const { return port_; }
    int requests() const { return requests_; }
    int handshakes() const { return handshakes_; }
    std::string proxy_request() const
    {
        const std::lock_guard lock(mutex_);
        return proxy_request_;
    }
    std::string last_request() const
    {
        const std::lock_guard lock(mutex_);
        return last_request_;
    }
    int notified() const { return notified_; }  ///< connections the client ended with close_notify
    std::string server_name() const
    {
        const std::lock_guard lock(mutex_);
        return name_;
    }

private:
    void serve()
    {
        // OpenSSL writes without MSG_NOSIGNAL, and clients of tests go away in the middle.
        sigset_t pipe;
        ::sigemptyset(&pipe);
        ::sigaddset(&pipe, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
        for (;;) {
            const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0) return;
            {
                const std::lock_guard lock(mutex_);
                connection_ = fd;
            }
            SSL* ssl = SSL_new(context_);
            SSL_set_fd(ssl, fd);
            if (be_proxy(fd) && SSL_accept(ssl) == 1) {
                ++handshakes_;
                talk(ssl);
            }
            SSL_free(ssl);
            {
                const std::lock_guard lock(mutex_);
                connection_ = -1;
                ::close(fd);
            }
            ERR_clear_error();
        }
    }
    // Takes the head byte by byte: what follows belongs to TLS.
    bool be_proxy(int fd)
    {
        if (extras_.proxy_answer.empty()) return true;
        std::string head;
        char byte = 0;
        while (head.find("\r\n\r\n") == std::string::npos) {
            if (::recv(fd, &byte, 1, 0) != 1) return false;
            head += byte;
        }
        {
            const std::lock_guard lock(mutex_);
            proxy_request_ = head;
        }
        return ::send(fd, extras_.proxy_answer.data(), extras_.proxy_answer.size(), MSG_NOSIGNAL) > 0;
    }
    void talk(SSL* ssl)
    {
        if (const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name)) {
            const std::lock_guard lock(mutex_);
            name_ = name;
        }
        if (extras_.forward_to != 0) return relay(ssl);
        std::string head;
        char buffer[4096];
        if (end_ == tls_end::hang_up) {
            const linger at_once{1, 0};
            ::shutdown(SSL_get_fd(ssl), SHUT_WR);
            if (::read(SSL_get_fd(ssl), buffer, 1) == 1) ::setsockopt(SSL_get_fd(ssl), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
            return;
        }
        for (;;) {
            const int n = SSL_read(ssl, buffer, sizeof buffer);
            if (n <= 0) {
                if (SSL_get_error(ssl, n) == SSL_ERROR_ZERO_RETURN) ++notified_;
                return;
            }
            head.append(buffer, static_cast<std::size_t>(n));
            if (head.find("\r\n\r\n") == std::string::npos) continue;
            {
                const std::lock_guard lock(mutex_);
                last_request_ = std::exchange(head, {});
            }
            const std::string& response = responses_[std::min(static_cast<std::size_t>(requests_++), responses_.size() - 1)];
            if (end_ == tls_end::notify) return answer_and_notify(ssl, response);
            SSL_write(ssl, response.data(), static_cast<int>(response.size()));
            if (end_ == tls_end::shutdown) SSL_shutdown(ssl);
            if (end_ != tls_end::keep) return;
        }
    }
    void relay(SSL* ssl)
    {
        std::string head;
        char buffer[4096];
        while (head.find("\r\n\r\n") == std::string::npos) {
            const int n = SSL_read(ssl, buffer, sizeof buffer);
            if (n <= 0) return;
            head.append(buffer, static_cast<std::size_t>(n));
        }
        {
            const std::lock_guard lock(mutex_);
            proxy_request_ = head;
        }
        const int to = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        at.sin_port = htons(extras_.forward_to);
        const std::string answer = "HTTP/1.1 200 OK\r\n\r\n";
        bool open = ::connect(to, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 && SSL_write(ssl, answer.data(), static_cast<int>(answer.size())) > 0;
        while (open) {
            pollfd both[2] = {{SSL_get_fd(ssl), POLLIN, 0}, {to, POLLIN, 0}};
            ::poll(both, 2, SSL_pending(ssl) > 0 ? 0 : -1);
            if (SSL_pending(ssl) > 0 || both[0].revents != 0) {
                const int n = SSL_read(ssl, buffer, sizeof buffer);
                open = n > 0 && ::send(to, buffer, static_cast<std::size_t>(n), MSG_NOSIGNAL) == n;
            }
            if (open && both[1].revents != 0) {
                const ssize_t n = ::recv(to, buffer, sizeof buffer, 0);
                open = n > 0 && SSL_write(ssl, buffer, static_cast<int>(n)) == n;
            }
        }
        ::close(to);
    }
    void answer_and_notify(SSL* ssl, const std::string& response)
    {
        const int fd = SSL_get_fd(ssl), on = 1, off = 0;
        ::setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
        SSL_write(ssl, response.data(), static_cast<int>(response.size()));
        SSL_shutdown(ssl);
        ::setsockopt(fd, IPPROTO_TCP, TCP_CORK, &off, sizeof off);
        char rest[256];
        while (::recv(fd, rest, sizeof rest, 0) > 0) {}
    }
    std::vector<std::string> responses_;
    tls_extras extras_;
    std::string name_, proxy_request_, last_request_;
    mutable std::mutex mutex_;
    tls_end end_;
    SSL_CTX* context_;
    int listener_ = -1;
    int connection_ = -1;
    std::atomic<int> requests_{0}, notified_{0}, handshakes_{0};
    std::uint16_t port_ = 0;
    std::thread thread_;
};

}  // namespace reagent::net_tests
