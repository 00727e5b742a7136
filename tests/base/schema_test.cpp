#include <reagent/base/error.hpp>
#include <reagent/base/schema.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {
namespace schema_test {
using reagent::errc;
using reagent::json;
using reagent::json_schema;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

json parsed(const char* text)
{
    return json::parse_or_throw(text, "the test's JSON");
}

std::vector<std::string> check(const char* schema, const char* value)
{
    std::string problem;
    const boost::system::result<json_schema> s = json_schema::compile(parsed(schema), problem);
    if (!s) return {"schema: " + problem};
    return s->violations(parsed(value));
}

constexpr const char* refund = R"({"type":"object","properties":{
    "order_id":{"type":"string","minLength":3,"maxLength":8},"amount":{"type":"number","minimum":0,"maximum":100},"count":{"type":"integer","exclusiveMinimum":0},
    "kind":{"type":"string","enum":["full","part"]},"note":{"type":["string","null"]},"tags":{"type":"array","items":{"type":"string"},"maxItems":2,"uniqueItems":true},
    "who":{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"]},"any":{"anyOf":[{"type":"integer"},{"type":"boolean"}]}},
    "required":["order_id","amount"],"additionalProperties":false})";

TEST(JsonSchema, AcceptsWhatConforms)
{
    EXPECT_THAT(check(refund, R"({"order_id":"abc","amount":1.5})"), IsEmpty());
    EXPECT_THAT(check(refund, R"({"order_id":"abc","amount":100,"count":2.0,"kind":"part","note":null,"tags":["a","b"],"who":{"age":7},"any":true})"),
                IsEmpty());
    EXPECT_THAT(check("{}", "[1,null]"), IsEmpty());
    EXPECT_THAT(json_schema().violations(json(1)), IsEmpty());
}

TEST(JsonSchema, NamesEveryBadFieldInWordsToActOn)
{
    EXPECT_THAT(check(refund, R"({"order_id":7})"), UnorderedElementsAre("order_id: must be string, got 7", "amount: is required but missing"));
    EXPECT_THAT(check(refund, R"({"order_id":"abc","amount":1,"count":1.5,"kind":"none","note":3,"extra":1})"),
                UnorderedElementsAre("count: must be integer, got 1.5", "kind: must be one of \"full\", \"part\", got \"none\"",
                                     "note: must be string or null, got 3",
                                     "extra: is not a known field; known fields are order_id, amount, count, kind, note, tags, who, any"));
    EXPECT_THAT(
        check(refund, R"({"order_id":"a","amount":-1,"count":0})"),
        UnorderedElementsAre("order_id: must have at least 3 characters", "amount: must be at least 0, got -1", "count: must be greater than 0, got 0"));
    EXPECT_THAT(check(refund, R"({"order_id":"123456789","amount":101})"),
                UnorderedElementsAre("order_id: must have at most 8 characters", "amount: must be at most 100, got 101"));
    EXPECT_THAT(check(refund, R"({"order_id":"abc","amount":1,"tags":["a",1],"who":{}})"),
                UnorderedElementsAre("tags[1]: must be string, got 1", "who.age: is required but missing"));
    EXPECT_THAT(check(refund, R"({"order_id":"abc","amount":1,"tags":["a","b","c"],"who":{"age":"x"}})"),
                UnorderedElementsAre("tags: must have at most 2 elements", "who.age: must be integer, got \"x\""));
    EXPECT_THAT(check(refund, R"({"order_id":"abc","amount":1,"tags":["a","a"],"any":"x"})"),
                UnorderedElementsAre("tags: must not hold the same element twice", "any: must be integer or boolean, got \"x\""));
    EXPECT_THAT(check(refund, R"({"order_id":"abc","amount":1,"it's":1})"), ElementsAre(testing::StartsWith("it's: is not a known field")));
    EXPECT_THAT(check(refund, "[]"), ElementsAre("value: must be object, got an array"));
    EXPECT_THAT(check(refund, "\"x\""), ElementsAre("value: must be object, got \"x\""));
}

TEST(JsonSchema, FollowsReferencesAndPatterns)
{
    constexpr const char* tree =
        R"({"$defs":{"node":{"type":"object","properties":{"name":{"type":"string","pattern":"^[a-z]+$"},"next":{"$ref":"#/$defs/node"}},"required":["name"]}},
        "$ref":"#/$defs/node"})";
    EXPECT_THAT(check(tree, R"({"name":"a","next":{"name":"b"}})"), IsEmpty());
    EXPECT_THAT(check(tree, R"({"name":"a","next":{"name":"B"}})"), ElementsAre("next.name: must match the pattern \"^[a-z]+$\", got \"B\""));
    EXPECT_THAT(check(tree, R"({"name":"a","next":{}})"), ElementsAre("next.name: is required but missing"));
}

TEST(JsonSchema, PatternsAreLinearInTimeAndStack)
{
    const json_schema s =
        *json_schema::compile(parsed(R"({"type":"object","properties":{"path":{"type":"string","pattern":"^(a|b)*$"},"evil":{"pattern":"^(a+)+$"},
        "greek":{"pattern":"^\\u03b1+$"},"pattern":{"type":"string"}},"default":{"pattern":"("}})"));
    const std::string huge(1'000'000, 'a');
    EXPECT_THAT(s.violations(json::object().set("path", huge).set("pattern", "(")), IsEmpty());
    EXPECT_THAT(s.violations(json::object().set("evil", std::string(100, 'a') + "!")), ElementsAre(testing::StartsWith("evil: must match the pattern")));
    EXPECT_THAT(s.violations(json::object().set("greek", "\xCE\xB1")), IsEmpty());
    EXPECT_THAT(s.violations(json::object().set("greek", "a")), ElementsAre(testing::StartsWith("greek: must match the pattern")));
    EXPECT_THAT(s.violations(json::object().set("evil", 7)), IsEmpty()) << "a pattern is for strings";
}

TEST(JsonSchema, DatesAreCheckedOtherFormatsAreNotes)
{
    constexpr const char* schema = R"({"properties":{"at":{"format":"date-time"},"on":{"format":"date"},"mail":{"format":"email"}}})";
    EXPECT_THAT(check(schema, R"({"at":"2026-01-01T00:00:00Z","on":"2026-02-28","mail":"nobody"})"), IsEmpty());
    EXPECT_THAT(check(schema, R"({"at":"yesterday","on":"2026-02-30"})"),
                UnorderedElementsAre("at: String should be a valid date-time", "on: String should be a valid date"));
}

TEST(JsonSchema, LongNamesAreNotGivenToTheNameMatcher)
{
    const json_schema s = *json_schema::compile(parsed(R"({"type":"object","patternProperties":{"^x-":{"type":"integer"}}})"));
    EXPECT_THAT(s.violations(json::object().set("x-a", 1)), IsEmpty());
    EXPECT_THAT(s.violations(json::object().set("x-a", "b")), testing::Not(IsEmpty()));
    EXPECT_THAT(s.violations(json::object().set("k", json::array().push_back(json::object().set(std::string(257, 'x'), 1)))),
                ElementsAre(testing::StartsWith("k[0]." + std::string(40, 'x') + ": the name is longer")));
    EXPECT_THAT(s.violations(json::object().set(std::string(256, 'x'), 1)), IsEmpty());
}

TEST(JsonSchema, PatternsOfNamesCannotBeDrivenIntoExponentialTime)
{
    const auto problem = [](const std::string& pattern) {
        std::string out;
        const json schema = json::object().set("patternProperties", json::object().set(pattern, json::object()));
        return json_schema::compile(schema, out).has_value() ? std::string() : out;
    };
    for (const char* fine : {"^x-", "^[a-z_*+(]+$", "^(foo|bar)$", ".*", "^a{2,5}$", "^\\(a\\)*$"}) EXPECT_EQ(problem(fine), "") << fine;
    for (const char* bad : {"^(a+)+$", "^(a|a)*$", "(x)+", "^(a|aa)+$", "(aa|a|\\\\)*", "(a|a)(a|a)", "a*a*", "a?a?a", ".*=.*", "((a))"})
        EXPECT_THAT(problem(bad), testing::HasSubstr("one repetition")) << bad;
    EXPECT_NE(problem("a(?=b)"), "");
    EXPECT_NE(problem("(a)\\1"), "");
    EXPECT_NE(problem("("), "");
}

TEST(JsonSchema, NumbersBeyond64BitsAreStillNumbers)
{
    EXPECT_THAT(check(R"({"type":"number"})", "1e400"), IsEmpty());
    EXPECT_THAT(check(R"({"type":"integer"})", "9223372036854775807"), IsEmpty());
    EXPECT_THAT(check(R"({"const":1.0})", "1"), IsEmpty());
    EXPECT_THAT(check(R"({"const":{"a":[1]}})", R"({"a":[2]})"), ElementsAre("value: must be {\"a\":[1]}, got an object"));
}

TEST(JsonSchema, UnusableSchemasSayWhy)
{
    for (const char* schema : {"[]", "1", R"({"type":7})", R"({"type":"text"})", R"({"properties":[]})", R"({"properties":{"a":{"pattern":"("}}})",
                               R"({"$ref":"http://example.com/schema"})", R"({"required":"a"})"}) {
        std::string problem;
        const boost::system::result<json_schema> s = json_schema::compile(parsed(schema), problem);
        ASSERT_FALSE(s.has_value()) << schema;
        EXPECT_EQ(s.error(), errc::invalid_argument);
        EXPECT_FALSE(problem.empty()) << schema;
    }
    std::string problem;
    EXPECT_FALSE(json_schema::compile(parsed(R"({"properties":{"a":{"pattern":"("}}})"), problem).has_value());
    EXPECT_EQ(problem, "a: unusable pattern (: missing ): (");
    EXPECT_FALSE(json_schema::compile(parsed(R"x({"properties":{"a":{"pattern":"a(?=b)"}}})x"), problem).has_value());
    EXPECT_FALSE(json_schema::compile(parsed(R"({"patternProperties":{"(":{}}})"), problem).has_value());
}

}  // namespace schema_test
}  // namespace
