#include <reagent/base/schema.hpp>

#include <gtest/gtest.h>

namespace {
namespace schema_reference_test {

using namespace reagent;

json read(std::string_view text)
{
    return json::parse_or_throw(text, "schema");
}

TEST(SchemaReference, LeadsIntoTheDocument)
{
    const json root = read(R"({"$defs":{"a":{"type":"string"},"b/c":{"x~y":true}},"allOf":[{"const":1}]})");
    EXPECT_EQ(schema_reference(root, "#"), &root);
    EXPECT_EQ(schema_reference(root, "#/$defs/a"), root["$defs"].find("a"));
    EXPECT_EQ(*schema_reference(root, "#/$defs/b~1c/x~0y"), json(true));
    EXPECT_EQ(*schema_reference(root, "#/allOf/0/const"), json(1));
    for (const char* nothing : {"", "other.json", "#/nothing", "#/$defs/a/type/x", "#anchor", "#/allOf/1", "#/allOf/x"})
        EXPECT_EQ(schema_reference(root, nothing), nullptr) << nothing;
}

/// A ring of references used to be followed until the stack was gone.
TEST(SchemaReference, ARingIsAnError)
{
    for (const char* ring : {R"({"properties":{"a":{"$ref":"#/properties/a"}}})", R"({"$ref":"#"})",
                             R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})"}) {
        std::string problem;
        EXPECT_FALSE(json_schema::compile(read(ring), problem)) << ring;
        EXPECT_NE(problem.find("leads to references only"), std::string::npos) << problem;
    }
    const auto tree = json_schema::compile(read(R"({"type":"object","properties":{"child":{"$ref":"#"}},"additionalProperties":false})"));
    ASSERT_TRUE(tree) << "a schema that holds itself is none";
    EXPECT_TRUE(tree->violations(read(R"({"child":{"child":{}}})")).empty());
    EXPECT_FALSE(tree->violations(read(R"({"child":{"other":1}})")).empty());
}

}  // namespace schema_reference_test
}  // namespace
