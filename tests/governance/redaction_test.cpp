#include <reagent/governance/redaction.hpp>

#include <gtest/gtest.h>

namespace {
namespace redaction_test {

using namespace reagent;

std::string redacted(const char* text)
{
    return redactor()(json::parse_or_throw(text, "value")).dump();
}

TEST(Redaction, Table)
{
    struct row {
        const char *in, *out;
    };
    const row rows[] = {
        {R"({"apiKey":"abc","n":1})", R"({"apiKey":"[REDACTED:key=apiKey]","n":1})"},  // S37
        {R"({"h":"Bearer abc.def"})", R"({"h":"[REDACTED:pattern=Bear...]"})"},        // S38
        {R"({"API_KEY":{"deep":1}})", R"({"API_KEY":"[REDACTED:key=API_KEY]"})"},
        {R"([{"Authorization":"Basic eA=="}])", R"([{"Authorization":"[REDACTED:key=Authorization]"}])"},
        {R"({"h":"authorization: bearer\tabc, bearer x"})", R"({"h":"authorization: [REDACTED:pattern=bear...], [REDACTED:pattern=bear...]"})"},
        {R"({"h":"Bearer "})", R"({"h":"Bearer "})"},
        {R"({"h":"Bearerabc"})", R"({"h":"Bearerabc"})"},
        {R"({"k":"use sk-proj_0123456789abcdef now"})", R"({"k":"use [REDACTED:pattern=sk-p...] now"})"},
        {R"({"k":"sk-0123456789abcde"})", R"({"k":"sk-0123456789abcde"})"},
        {R"({"k":"sk-0123456789abcdef"})", R"({"k":"[REDACTED:pattern=sk-0...]"})"},
        {R"({"sk-0123456789abcdef":1})", R"({"[REDACTED:pattern=sk-0...]":1})"},
        {R"({"u":"postgres://user:pa%3Ass@db/x?y"})", R"({"u":"postgres://[REDACTED:userinfo]@db/x?y"})"},
        {R"({"u":"https://host/a@b"})", R"({"u":"https://host/a@b"})"},
        {R"({"apiKeys":"abc","x_api_key":"y"})", R"({"apiKeys":"abc","x_api_key":"y"})"},
        {R"(["plain",1.50,null,true,{"a":[]}])", R"(["plain",1.50,null,true,{"a":[]}])"},
        {R"("Bearer top.level")", R"("[REDACTED:pattern=Bear...]")"},
    };
    for (const row& r : rows) EXPECT_EQ(redacted(r.in), r.out) << r.in;
}

TEST(Redaction, AddedKeysMayBeSuffixes)
{
    redactor r;
    r.keys({"*_token", "Password"});
    EXPECT_EQ(r(json::parse_or_throw(R"({"csrf_token":"a","token":"b","password":1,"apikey":2})", "value")).dump(),
              R"({"csrf_token":"[REDACTED:key=csrf_token]","token":"b","password":"[REDACTED:key=password]","apikey":"[REDACTED:key=apikey]"})");  // S40
}

TEST(Redaction, DeepNestingIsCutOff)
{
    json deep = json("Bearer abc");
    for (int i = 0; i < redactor::max_depth; ++i) deep = json(json::array_type{std::move(deep)});
    const std::string at_limit = redactor()(deep).dump();
    EXPECT_NE(at_limit.find("[REDACTED:pattern=Bear...]"), std::string::npos);
    deep = json(json::array_type{std::move(deep)});
    EXPECT_NE(redactor()(deep).dump().find("[REDACTED:depth]"), std::string::npos);
}

}  // namespace redaction_test
}  // namespace
