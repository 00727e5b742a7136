#include "policy_impl.hpp"

#include <reagent/base/error.hpp>
#include <reagent/governance/gate_policy.hpp>

#include <gtest/gtest.h>

namespace {
namespace gate_config_test {

using namespace reagent;

gate_policy read(const char* text)
{
    return gate_policy::from_json(json::parse_or_throw(text, "config"));
}

std::string failure(const char* text)
{
    try {
        read(text);
    } catch (const config_error& e) {
        return e.what();
    }
    return "no error";
}

TEST(GateConfig, ErrorsNameTheKey)
{
    struct row {
        const char *config, *starts;
    };
    const row rows[] = {
        {R"({"tools":"search"})", "tools: must be an object, not string"},                             // C01
        {R"({"tools":{"allowlist":"x"}})", "tools.allowlist: must be an array, not string"},           // C02
        {R"({"tools":{"allowlist":["a",123]}})", "tools.allowlist[1]: must be a string, not number"},  // C04
        {R"({"tools":{"denylist":[null]}})", "tools.denylist[0]: "},
        {R"({"tools":{"denyArgPatterns":{}}})", "tools.denyArgPatterns: is not available in this version"},
        {R"({"tools":{"allowList":[]}})", "tools.allowList: unknown key; did you mean \"allowlist\"?"},
        {R"({"budget":{"softRatio":1}})", "budget.softRatio: must be strictly between 0 and 1"},  // C14
        {R"({"budget":{"softRatio":0}})", "budget.softRatio: "},
        {R"({"budget":{"resources":{"w":-1}}})", "budget.resources: is not available"},
        {R"({"budget":{"maxCostUsd":-1}})", "budget.maxCostUsd: must be a finite number of at least 0"},  // C18
        {R"({"budget":{"maxCostUsd":1e400}})", "budget.maxCostUsd: must be a finite number"},
        {R"({"budget":{"maxCostUsd":"1"}})", "budget.maxCostUsd: must be a number, not string"},
        {R"({"budget":{"maxTokens":-5}})", "budget.maxTokens: "},
        {R"({"budget":{"strict":true}})", "budget.strict: is not available"},
        {R"({"limits":{"maxTurns":-1}})", "limits.maxTurns: "},
        {R"({"limits":{"maxTurns":true}})", "limits.maxTurns: must be a number, not boolean"},
        {R"({"limits":{"maxToolRounds":[]}})", "limits.maxToolRounds: "},
        {R"({"limits":{"timeoutSeconds":5}})", "limits.timeoutSeconds: is not available in this version"},
        {R"({"limits":{"maxChildren":5}})", "limits.maxChildren: "},
        {R"({"limits":{"maxTurn":5}})", "limits.maxTurn: unknown key; did you mean \"maxTurns\"?"},
        {R"({"tool":{"denylist":["x"]}})", "tool: unknown key; did you mean \"tools\"?"},  // C19
        {R"({"zzzzzzzzzzzzzzzz":1})", "zzzzzzzzzzzzzzzz: unknown key"},
        {R"({"content":{"denyPatterns":[]}})", "content: this section is not available in this version"},
        {R"({"bash":{"allow":["git"]}})", "bash: this section is not available"},
        {R"({"rootRunId":"q"})", "rootRunId: is not available"},
        {R"({"fs":{}})", "fs: this section is not available"},
        {R"({"net":{}})", "net: this section is not available"},
        {R"({"secrets":{}})", "secrets: this section is not available"},
        {R"({"flags":{}})", "flags: this section is not available"},
        {R"({"spawn":{}})", "spawn: this section is not available"},
        {R"({"defer":{}})", "defer: this section is not available"},
        {R"({"axisB":{}})", "axisB: this section is not available"},
        {R"({"rwx":{}})", "rwx: this section is not available"},
        {R"({"humanChannel":{}})", "humanChannel: "},
        {R"({"audit":{"path":""}})", "audit.path: must not be empty"},
        {R"({"audit":{"path":5}})", "audit.path: must be a string, not number"},
        {R"({"audit":{"file":"x"}})", "audit.file: unknown key"},
        {R"({"spawnDepth":-1})", "spawnDepth: must be an integer"},
        {R"({"spawnDepth":1.5})", "spawnDepth: must be an integer"},
        {R"({"runId":5})", "runId: must be a string, not number"},
        {R"({"humanChannelTimeoutMs":-1})", "humanChannelTimeoutMs: "},
        {R"({"allowUnknownKeys":1})", "allowUnknownKeys: must be true or false"},
        {R"([])", "gate: the configuration must be an object, not array"},
    };
    for (const row& r : rows) EXPECT_TRUE(failure(r.config).starts_with(r.starts)) << r.config << "\n  " << failure(r.config);
}

TEST(GateConfig, ReadsWhatItKnows)
{
    const gate_policy p = read(R"({"tools":{"allowlist":["a*"],"denylist":["b"],"denyArgPatterns":null},"limits":{"maxTurns":7,"maxToolRounds":2.5},
        "budget":{"maxCostUsd":0.05,"maxTokens":1000.9,"softRatio":0.5},"audit":{"path":null},"runId":"r","parentRunId":"p","spawnDepth":3,
        "humanChannelTimeoutMs":1.5,"content":null})");
    const gate_policy::impl& i = p.get();
    EXPECT_TRUE(i.allow_step && i.deny_step);
    EXPECT_EQ(i.max_turns, 7u);
    EXPECT_EQ(i.max_tool_rounds, 3u) << "2.5 is reached at 3";
    EXPECT_EQ(p.budget().cost, usd("0.05"));
    EXPECT_EQ(p.budget().tokens, 1000u);
    EXPECT_EQ(i.soft_ratio, 0.5);
    EXPECT_EQ(i.run_id + i.parent_run_id, "rp");
    EXPECT_EQ(i.spawn_depth, 3);
    EXPECT_EQ(p.channel_timeout(), std::chrono::microseconds(1500));
    EXPECT_TRUE(p.has_rules());
    EXPECT_TRUE(p.open_audit());
    EXPECT_EQ(p.open_audit().path(), "");
}

TEST(GateConfig, MoneyIsReadWithoutADetourOverBinaryFractions)
{
    EXPECT_EQ(read(R"({"budget":{"maxCostUsd":0.1}})").budget().cost->nanos(), 100'000'000);
    EXPECT_EQ(read(R"({"budget":{"maxCostUsd":1234567.123456789}})").budget().cost->nanos(), 1'234'567'123'456'789);
    EXPECT_EQ(read(R"({"budget":{"maxCostUsd":5e-3}})").budget().cost->nanos(), 5'000'000);
    EXPECT_EQ(read(R"({"budget":{"maxTokens":1e30}})").budget().tokens, UINT64_MAX);
}

TEST(GateConfig, UnlimitedAbsentAndNullMeanNoCap)
{
    for (const char* text :
         {R"({})", R"(null)", R"({"budget":{"maxCostUsd":"unlimited","maxTokens":null},"limits":{"maxTurns":"unlimited"}})", R"({"tools":null,"limits":{}})"}) {
        const gate_policy p = read(text);
        EXPECT_FALSE(p.has_rules()) << text;
        EXPECT_FALSE(p.budget().cost || p.budget().tokens) << text;
        EXPECT_FALSE(p.open_audit()) << text;
    }
}

TEST(GateConfig, UnknownKeysMayBeAllowedButNotSectionsThatAreMissing)
{
    EXPECT_FALSE(read(R"({"x":1,"tools":{"y":2},"allowUnknownKeys":true})").has_rules());
    EXPECT_TRUE(failure(R"({"bash":{},"allowUnknownKeys":true})").starts_with("bash: "));
    EXPECT_TRUE(failure(R"({"x":1,"allowUnknownKeys":false})").starts_with("x: unknown key"));
}

TEST(GateConfig, SettersReturnANewPolicy)
{
    const gate_policy none;
    const gate_policy p =
        none.allow_tools({"a"}).deny_tools({"b"}).max_turns(1).max_tool_rounds(2).max_cost(usd("3")).max_tokens(4).soft_ratio(0.5).channel_timeout(
            std::chrono::seconds(6));
    EXPECT_FALSE(none.has_rules());
    EXPECT_TRUE(p.has_rules());
    EXPECT_EQ(p.get().max_turns, 1u);
    EXPECT_EQ(p.get().max_tool_rounds, 2u);
    EXPECT_EQ(p.budget().cost, usd("3"));
    EXPECT_EQ(p.budget().tokens, 4u);
    EXPECT_EQ(p.channel_timeout(), std::chrono::seconds(6));
    EXPECT_THROW(none.max_cost(usd("-1")), config_error);
    EXPECT_THROW(none.soft_ratio(1), config_error);
}

}  // namespace gate_config_test
}  // namespace
