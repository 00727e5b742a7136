// Where `reagent run` writes decisions, and what of the gate's section it refuses.
#include "program.hpp"

#include <reagent/base/json.hpp>

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace reagent::apps_test {
namespace {
namespace run_audit_test {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view fixtures = R"({"fixtures":[{"match":{},"response":{"content":"Hello."}}]})";

/// A path that is free, whose file goes with the test.
class new_file {
public:
    new_file() : path_(scratch_file("", ".jsonl").path()) {}
    new_file(const new_file&) = delete;
    new_file& operator=(const new_file&) = delete;
    ~new_file()
    {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    const std::string& path() const noexcept { return path_; }
    std::vector<json> lines() const
    {
        std::vector<json> out;
        std::ifstream in(path_);
        for (std::string line; std::getline(in, line);) out.push_back(json::parse_or_throw(line, path_));
        return out;
    }

private:
    std::string path_;
};

class RunAudit : public ::testing::Test {
protected:
    program_result ask(const json& gate, std::vector<std::string> more = {})
    {
        const scratch_file file(json::object().set("gate", gate).dump());
        std::vector<std::string> all{"run", "hello", "-c", file.path(), "--base-url", mock.base_url()};
        for (std::string& m : more) all.push_back(std::move(m));
        return reagent_run(std::move(all));
    }
    mock_process mock{fixtures};
    new_file of_gate, of_flag;
};

TEST_F(RunAudit, ThePathOfTheGateIsWritten)
{
    json gate = json::object().set("audit", json::object().set("path", of_gate.path())).set("runId", "run-7").set("parentRunId", "run-1").set("spawnDepth", 1);
    const program_result r = ask(gate);
    EXPECT_EQ(r.status, 0) << r.err;
    const std::vector<json> lines = of_gate.lines();
    ASSERT_THAT(lines, SizeIs(2));
    EXPECT_EQ(lines[0]["phase"], json("gate"));
    EXPECT_EQ(lines[1]["phase"], json("record"));
    for (const json& line : lines) {
        EXPECT_EQ(line["run_id"], json("run-7"));
        EXPECT_EQ(line["parent_run_id"], json("run-1"));
        EXPECT_EQ(line["spawn_depth"], json(1));
    }
}

TEST_F(RunAudit, TheFlagWinsOverThePath)
{
    const program_result r = ask(json::object().set("audit", json::object().set("path", of_gate.path())), {"--audit", of_flag.path()});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_THAT(of_flag.lines(), SizeIs(2));
    EXPECT_FALSE(std::filesystem::exists(of_gate.path()));
}

TEST_F(RunAudit, MissingDirectoriesAreMadeAndTheHelpSaysSo)
{
    const std::string made = of_gate.path() + ".d";
    const program_result r = ask(json::object(), {"--audit", made + "/deeper/audit.jsonl"});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_TRUE(std::filesystem::exists(made + "/deeper/audit.jsonl"));
    EXPECT_EQ(std::filesystem::status(made + "/deeper").permissions(), std::filesystem::perms::owner_all);
    std::filesystem::remove_all(made);
    std::string help = reagent_run({"run", "--help"}).out;
    for (std::size_t at = 0; (at = help.find_first_of(" \n", at)) != std::string::npos; ++at) {
        const std::size_t end = std::min(help.find_first_not_of(" \n", at), help.size());
        help.replace(at, end - at, " ");
    }
    EXPECT_THAT(help, HasSubstr("made with its directories where they are missing"));
}

TEST_F(RunAudit, APathThatCannotBeOpenedIsOneLineBeforeTheStart)
{
    const program_result r = ask(json::object().set("audit", json::object().set("path", "/dev/null/x.jsonl")));
    EXPECT_EQ(r.status, 2);
    EXPECT_THAT(r.messages(), SizeIs(1));
    EXPECT_THAT(r.err, HasSubstr("/dev/null/x.jsonl"));
}

TEST_F(RunAudit, WhatHasNoEffectIsRefused)
{
    const program_result r = ask(json::object().set("rootRunId", "q"));
    EXPECT_EQ(r.status, 2);
    EXPECT_THAT(r.err, HasSubstr("gate: rootRunId: is not available in this version"));
}

}  // namespace run_audit_test
}  // namespace
}  // namespace reagent::apps_test
