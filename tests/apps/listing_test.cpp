#include "program.hpp"

#include <reagent/base/json.hpp>

#include <gmock/gmock.h>

namespace reagent::apps_test {
namespace {
namespace listing_test {

using ::testing::HasSubstr;

TEST(Models, TableAndJsonTellTheSame)
{
    const program_result table = reagent_run({"models"});
    EXPECT_EQ(table.status, 0);
    EXPECT_THAT(table.out, HasSubstr("gpt-4o-mini"));
    const json all = json::parse_or_throw(reagent_run({"models", "--json"}).out, "the output");
    EXPECT_TRUE(all["date"].is_string());
    bool seen = false;
    for (const json& m : all["models"].as_array()) {
        EXPECT_THAT(table.out, HasSubstr(m["id"].as_string()));
        EXPECT_GT(m["max_output_tokens"].get_int64(), 0);
        if (m["id"] != json("gpt-4o-mini")) continue;
        seen = true;
        EXPECT_EQ(m["prices"][0]["input_usd_per_million"].get_double(), 0.15);
        EXPECT_EQ(m["prices"][0]["output_usd_per_million"].get_double(), 0.6);
    }
    EXPECT_TRUE(seen);
}

TEST(Doctor, ChecksAreLinesOrOneObject)
{
    const program_result r = reagent_run({"doctor"});
    const json all = json::parse_or_throw(reagent_run({"doctor", "--json"}).out, "the output");
    EXPECT_EQ(r.status, all["ok"] == json(true) ? 0 : 1);
    std::vector<std::string> names;
    for (const json& c : all["checks"].as_array()) {
        names.push_back(c["check"].as_string());
        EXPECT_THAT(c["verdict"].as_string(), ::testing::AnyOf("ok", "warn", "fail"));
        EXPECT_THAT(r.out, HasSubstr(c["check"].as_string()));
        EXPECT_FALSE(c["detail"].as_string().empty());
        if (c["check"] == json("loopback")) { EXPECT_EQ(c["verdict"], json("ok")) << c["detail"].as_string(); }
        if (c["check"] == json("key")) { EXPECT_EQ(c["verdict"], json("warn")) << "no key in the environment of this test"; }
    }
    EXPECT_THAT(names, ::testing::ElementsAre("versions", "files", "tzdata", "certificates", "key", "names", "models", "loopback"));
}

TEST(Doctor, AMissingCertificateStoreFails)
{
    program p({"doctor"});
    p.set("SSL_CERT_FILE", "/no/such/file").set("SSL_CERT_DIR", "/no/such/dir");
    const program_result r = p.run();
    EXPECT_EQ(r.status, 1);
    EXPECT_THAT(r.out, HasSubstr("fail  certificates"));
}

}  // namespace listing_test
}  // namespace
}  // namespace reagent::apps_test
