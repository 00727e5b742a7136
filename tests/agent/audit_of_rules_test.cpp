// Identity and log that the gate's rules name, and where they apply.
#include "agent_fixture.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {
namespace audit_of_rules_test {

using namespace reagent;
using namespace agent_test;

/// A directory of its own, gone with the test.
class scratch {
public:
    scratch()
    {
        std::string name = (std::filesystem::temp_directory_path() / "reagent-audit-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        path_ = name;
    }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;
    ~scratch()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string file(std::string_view name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

gate_policy rules(std::string_view text)
{
    return gate_policy::from_json(json::parse_or_throw(text, "rules"));
}

class AuditOfRules : public fixture {
protected:
    scratch dir;
};

TEST_F(AuditOfRules, TheFileOfThePathIsWritten)
{
    const std::string path = dir.file("sub/log.jsonl");
    script({scripted_round().text("done")});
    const agent a = make(agent_options().gate(gate_policy::from_json(json::object().set("audit", json::object().set("path", path)))));
    EXPECT_TRUE(go(a).completed());
    EXPECT_EQ(a.audit().path(), path);
    std::ifstream in(path);
    std::string line;
    ASSERT_TRUE(std::getline(in, line)) << path;
    EXPECT_EQ(json::parse_or_throw(line, "line")["phase"].as_string(), "gate");
}

TEST_F(AuditOfRules, NullKeepsTheLinesInMemory)
{
    script({scripted_round().text("done")});
    const agent a = make(agent_options().gate(rules(R"({"audit":{"path":null}})")));
    EXPECT_TRUE(go(a).completed());
    EXPECT_EQ(a.audit().read().size(), 3u) << "gate, record, unpriced";
}

TEST_F(AuditOfRules, TheLogOfTheCallerWins)
{
    const std::string path = dir.file("unused.jsonl");
    script({scripted_round().text("done")});
    const audit_log own = audit_log::in_memory();
    const agent a = make(agent_options().gate(gate_policy::from_json(json::object().set("audit", json::object().set("path", path))), own));
    EXPECT_TRUE(go(a).completed());
    EXPECT_EQ(own.read().size(), 3u);
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(AuditOfRules, APathThatCannotBeOpenedIsAnErrorBeforeAnyRun)
{
    script({});
    const gate_policy bad = rules(R"({"audit":{"path":"/dev/null/x/log.jsonl"}})");
    EXPECT_THROW(make(agent_options().gate(bad)), config_error);
}

TEST_F(AuditOfRules, IdentityAndParentAreInEveryLine)
{
    script({scripted_round().text("one"), scripted_round().text("two")});
    const agent a = make(agent_options().gate(rules(R"({"audit":{"path":null},"runId":"run-7","parentRunId":"run-1","spawnDepth":2})")));
    EXPECT_EQ(go(a).run_id(), "run-7");
    EXPECT_EQ(go(a, run_request("hi").id("own")).run_id(), "own");
    const std::vector<json> lines = a.audit().read();
    ASSERT_EQ(lines.size(), 6u);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        EXPECT_EQ(lines[i]["run_id"].as_string(), i < 3 ? "run-7" : "own");
        EXPECT_EQ(lines[i]["parent_run_id"].as_string(), "run-1");
        EXPECT_EQ(lines[i]["spawn_depth"].get_int64(), 2);
    }
}

TEST_F(AuditOfRules, WhatHasNoEffectIsRefused)
{
    EXPECT_THROW(rules(R"({"rootRunId":"q"})"), config_error);
}

}  // namespace audit_of_rules_test
}  // namespace
