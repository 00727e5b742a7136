#include "program.hpp"

#include <reagent/base/json.hpp>
#include <reagent/testing/vector_match.hpp>

#include <gmock/gmock.h>

#include <functional>
#include <sstream>

namespace reagent::apps_test {
namespace {
namespace batch_test {

std::vector<json> answers(const program_result& r)
{
    std::vector<json> lines;
    std::istringstream text(r.out);
    for (std::string line; std::getline(text, line);) lines.push_back(json::parse_or_throw(line, "an answer"));
    return lines;
}

/// Feeds a file of cases to a batch command, the way an outside runner does.
void expect_vectors(std::vector<std::string> command, const std::string& file, const std::function<bool(const testing::vector_case&)>& wanted,
                    std::size_t least)
{
    std::string input;
    std::vector<testing::vector_case> cases;
    for (testing::vector_case& c : testing::read_vectors(REAGENT_SOURCE_DIR "/tests/vectors/" + file)) {
        if (!wanted(c)) continue;
        json in = json::object().set("id", c.id);
        for (const json::member& m : c.in.as_object()) in.set(m.first, m.second);
        input += in.dump() + "\n";
        cases.push_back(std::move(c));
    }
    ASSERT_GE(cases.size(), least);
    const program_result r = reagent_run(std::move(command), std::move(input));
    EXPECT_EQ(r.status, 0);
    EXPECT_EQ(r.err, "");
    const std::vector<json> told = answers(r);
    ASSERT_EQ(told.size(), cases.size());
    for (std::size_t i = 0; i < cases.size(); ++i) {
        EXPECT_EQ(told[i]["id"], json(cases[i].id));
        EXPECT_EQ(testing::vector_mismatch(cases[i].out, &told[i]), "") << cases[i].id;
    }
}

bool is_openai(const testing::vector_case& c)
{
    return c.in["provider"] == json("openai");
}

TEST(Batch, ToolVectors)
{
    expect_vectors(
        {"tools", "invoke", "--batch"}, "tools.jsonl", [](const auto&) { return true; }, 200);
}
TEST(Batch, DecodeVectors)
{
    expect_vectors({"provider", "decode", "--batch"}, "decode.jsonl", &is_openai, 20);
}
TEST(Batch, EncodeVectors)
{
    expect_vectors({"provider", "encode", "--batch"}, "encode.jsonl", &is_openai, 20);
}

TEST(Batch, ABadLineIsAnsweredAndTheBatchGoesOn)
{
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"tools", "invoke", "--batch"}, {"provider", "decode", "--batch"}, {"provider", "encode", "--batch"}}) {
        const program_result r = reagent_run(command, "{\n\n{\"id\":7}\n[1]\n{\"id\":\"last\",\"tool\":\"think\",\"args\":{\"thought\":\"\"}}");
        EXPECT_EQ(r.status, 0);
        const std::vector<json> told = answers(r);
        ASSERT_EQ(told.size(), 4U) << "the blank line has no answer, the line without an end has one";
        EXPECT_TRUE(told[0]["id"].is_null());
        EXPECT_EQ(told[0]["error"]["kind"], json("usage"));
        EXPECT_EQ(told[1]["id"].get_int64(), 7);
        EXPECT_EQ(told[1]["error"]["kind"], json("usage"));
        EXPECT_TRUE(told[1]["error"]["message"].is_string());
        EXPECT_EQ(told[2]["error"]["kind"], json("usage"));
        EXPECT_EQ(told[3]["id"], json("last"));
    }
}

TEST(Batch, AnswersComeLineByLine)
{
    program p({"tools", "invoke", "--batch"});
    p.input("{\"id\":1,\"tool\":\"think\",\"args\":{\"thought\":\"\"}}\n").keep_input_open();
    p.start();
    EXPECT_TRUE(p.wait_for_output("\"id\":1")) << "the answer comes before the input ends";
    p.close_input();
    EXPECT_EQ(p.wait().status, 0);
}

TEST(Provider, OneCaseFromAFile)
{
    const scratch_file file(R"({"provider":"openai","options":{"apiKey":"k","model":"m"},"messages":[{"role":"user","content":"hi"}],"tools":[]})");
    const program_result r = reagent_run({"provider", "encode", file.path()});
    EXPECT_EQ(r.status, 0) << r.err;
    const json out = json::parse_or_throw(r.out, "the output");
    EXPECT_EQ(out["method"], json("POST"));
    EXPECT_EQ(out["body"]["model"], json("m"));
    const program_result refused = reagent_run({"provider", "encode", "-"}, R"({"provider":"nobody"})");
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(refused.messages().size(), 1U);
}

}  // namespace batch_test
}  // namespace
}  // namespace reagent::apps_test
