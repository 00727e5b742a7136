#include "program.hpp"

#include <gmock/gmock.h>

namespace reagent::apps_test {
namespace {
namespace tls_test {

using ::testing::HasSubstr;

/// A TLS server of the openssl program with a certificate of its own making for 127.0.0.1.
class tls_server {
public:
    tls_server() : key_("", ".key"), certificate_("", ".pem")
    {
        program make("openssl",
                     {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=reagent test",
                      "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key_.path(), "-out", certificate_.path()});
        made = make.run();
        server_ = std::make_unique<program>(
            "openssl", std::vector<std::string>{"s_server", "-accept", "127.0.0.1:0", "-key", key_.path(), "-cert", certificate_.path(), "-www"});
        server_->keep_input_open();
        server_->start();
        if (!server_->wait_for_output("ACCEPT 127.0.0.1:")) return;
        const std::string& said = server_->output();
        const std::size_t at = said.find("ACCEPT 127.0.0.1:") + 17;
        base_url = "https://127.0.0.1:" + said.substr(at, said.find_first_not_of("0123456789", at) - at) + "/v1";
    }
    const std::string& certificate() const { return certificate_.path(); }
    const std::string& key() const { return key_.path(); }
    std::string base_url;
    program_result made;

private:
    scratch_file key_, certificate_;
    std::unique_ptr<program> server_;
};

TEST(Tls, AnUnknownAuthorityIsOneClearLine)
{
    const tls_server server;
    ASSERT_EQ(server.made.status, 0) << server.made.err;
    ASSERT_NE(server.base_url, "");
    const program_result r = reagent_run({"run", "hello", "--base-url", server.base_url, "--model", "m"});
    EXPECT_EQ(r.status, 1);
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(r.messages().size(), 1U) << r.err;
    EXPECT_THAT(r.err, HasSubstr("certificate"));

    const scratch_file other(R"(-----BEGIN CERTIFICATE-----
MIIBfTCCASOgAwIBAgIUB0m1r3n1gX0m1r3n1gX0m1r3n1gwCgYIKoZIzj0EAwIw
-----END CERTIFICATE-----
)",
                             ".pem");
    EXPECT_EQ(reagent_run({"run", "hello", "--base-url", server.base_url, "--model", "m", "--ca-file", other.path()}).status, 2)
        << "a broken bundle is bad configuration";
}

TEST(Tls, TheRightAuthorityIsTrusted)
{
    const tls_server server;
    ASSERT_NE(server.base_url, "");
    const program_result r =
        reagent_run({"run", "hello", "--base-url", server.base_url, "--model", "m", "--ca-file", server.certificate(), "--timeout-ms", "300"});
    // The server takes the request and keeps silent: the handshake went well.
    EXPECT_EQ(r.status, 1);
    EXPECT_THAT(r.err, HasSubstr("timed out after 300ms of socket inactivity"));
}

TEST(Tls, TheMockServesIt)
{
    const tls_server made;
    program mock({"mock", "--tls-cert", made.certificate(), "--tls-key", made.key()});
    mock.start();
    ASSERT_TRUE(mock.wait_for_output("/v1\n"));
    const std::string base = mock.output().substr(mock.output().find("http"), mock.output().find('\n') - mock.output().find("http"));
    EXPECT_TRUE(base.starts_with("https://127.0.0.1:")) << base;
    const program_result r = reagent_run({"run", "hello", "--base-url", base, "--model", "m", "--ca-file", made.certificate()});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_THAT(r.out, HasSubstr("You said: hello"));
    EXPECT_EQ(reagent_run({"mock", "--tls-cert", made.certificate()}).status, 2) << "a certificate without its key";
    const program_result missing = reagent_run({"mock", "--tls-cert", "/no/such/file", "--tls-key", made.key()});
    EXPECT_EQ(missing.status, 2);
    EXPECT_THAT(missing.err, HasSubstr("/no/such/file: No such file or directory"));
}

}  // namespace tls_test
}  // namespace
}  // namespace reagent::apps_test
