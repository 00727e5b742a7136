#include <reagent/base/error.hpp>
#include <reagent/testing/mock_fixtures.hpp>
#include <reagent/testing/mock_server.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace {
namespace mock_fixtures_test {

using namespace reagent;
using namespace reagent::testing;

std::string complaint(std::string_view text)
{
    try {
        parse_mock_fixtures(text, "f.json");
    } catch (const config_error& e) {
        return e.what();
    }
    return "accepted";
}

std::string fixture(std::string_view inside)
{
    return R"({"fixtures":[{"response":{"content":"a"}},)" + std::string(inside) + "]}";
}

TEST(MockFixtures, TheExampleOfTheDocumentationIsOne)
{
    std::ifstream file(std::string(REAGENT_SOURCE_DIR) + "/docs/mock.md");
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const std::size_t begin = text.find("```json\n"), end = text.find("```", begin + 8);
    ASSERT_NE(end, std::string::npos);
    EXPECT_EQ(parse_mock_fixtures(text.substr(begin + 8, end - begin - 8), "docs/mock.md").size(), 5u);
}

TEST(MockFixtures, ReadsEveryPart)
{
    const mock_fixtures all = parse_mock_fixtures(R"({"fixtures":[
        {"match":{"userMessage":"weather","hasToolResult":false,"turnIndex":0,"toolName":"w","model":"m","toolCallId":"c","sequenceIndex":2,"endpoint":"chat"},
         "response":{"content":"let me see","toolCalls":[{"name":"w","arguments":{"city":"Rome","n":1.50},"id":"x"},{"name":"v","arguments":"{\"a\""},{"name":"u"}]},
         "usage":"worst_case","chunkSize":3,"latency_ms":7,"gap_ms":8,
         "fault":{"kind":"reset","after_bytes":99,"times":2}},
        {"response":{"error":{"status":429,"message":"slow","type":"t","code":"c"},"usage":{"prompt_tokens":5,"completion_tokens":6}}},
        {"response":{"error":{"message":"x"},"status":503}}
    ]})",
                                                  "f.json");
    ASSERT_EQ(all.size(), 3u);
    const mock_match& m = all[0].match;
    EXPECT_EQ(m.user_message, "weather");
    EXPECT_EQ(m.has_tool_result, false);
    EXPECT_EQ(m.turn_index, 0u);
    EXPECT_EQ(m.tool_name, "w");
    EXPECT_EQ(m.tool_call_id, "c");
    EXPECT_EQ(m.model, "m");
    EXPECT_EQ(m.sequence_index, 2u);
    EXPECT_EQ(all[0].response.content, "let me see");
    ASSERT_EQ(all[0].response.tool_calls.size(), 3u);
    EXPECT_EQ(all[0].response.tool_calls[0].arguments, R"({"city":"Rome","n":1.50})");
    EXPECT_EQ(all[0].response.tool_calls[0].id, "x");
    EXPECT_EQ(all[0].response.tool_calls[1].arguments, "{\"a\"");
    EXPECT_EQ(all[0].response.tool_calls[2].arguments, "{}");
    EXPECT_EQ(all[0].usage, mock_usage::worst_case);
    EXPECT_EQ(all[0].chunk_size, 3u);
    EXPECT_EQ(all[0].latency, std::chrono::milliseconds(7));
    EXPECT_EQ(all[0].gap, std::chrono::milliseconds(8));
    EXPECT_EQ(all[0].fault.kind, mock_fault_kind::reset);
    EXPECT_EQ(all[0].fault.after_bytes, 99u);
    EXPECT_EQ(all[0].fault.times, 2u);
    EXPECT_EQ(all[1].response.status, 429);
    EXPECT_EQ(all[1].response.error_message, "slow");
    EXPECT_EQ(all[1].usage, mock_usage::given);
    EXPECT_EQ(all[1].prompt_tokens, 5u);
    EXPECT_EQ(all[2].response.status, 503);
}

TEST(MockFixtures, ABadFileGivesOneLineThatNamesFilePlaceAndFault)
{
    const std::pair<std::string, std::string> cases[] = {
        {"{\"fixtures\":[", "f.json: not JSON at byte 13"},
        {"[]", "f.json: the document must be an object, not array"},
        {"{}", "f.json: fixtures must be an array, not null"},
        {R"({"fixture":[]})", "f.json: fixture is not known; did you mean fixtures?"},
        {R"({"quite_something_else":[]})", "f.json: quite_something_else is not known"},
        {fixture("7"), "f.json: fixtures[1] must be an object, not number"},
        {fixture("{}"), "f.json: fixtures[1].response is missing"},
        {fixture(R"({"response":{}})"), "f.json: fixtures[1].response needs content, toolCalls or error"},
        {fixture(R"({"responce":{"content":""}})"), "f.json: fixtures[1].responce is not known; did you mean response?"},
        {fixture(R"({"match":{"userMesage":"a"},"response":{"content":""}})"), "f.json: fixtures[1].match.userMesage is not known; did you mean userMessage?"},
        {fixture(R"({"match":{"turnIndex":"one"},"response":{"content":""}})"),
         "f.json: fixtures[1].match.turnIndex must be a whole number of at least 0, not \"one\""},
        {fixture(R"({"match":{"turnIndex":-1},"response":{"content":""}})"),
         "f.json: fixtures[1].match.turnIndex must be a whole number of at least 0, not -1"},
        {fixture(R"({"match":{"hasToolResult":1},"response":{"content":""}})"), "f.json: fixtures[1].match.hasToolResult must be true or false, not number"},
        {fixture(R"({"match":{"endpoint":"image"},"response":{"content":""}})"),
         "f.json: fixtures[1].match.endpoint must be \"chat\": no other endpoint is served"},
        {fixture(R"({"response":{"content":1}})"), "f.json: fixtures[1].response.content must be a string, not number"},
        {fixture(R"({"response":{"toolCalls":{}}})"), "f.json: fixtures[1].response.toolCalls must be an array, not object"},
        {fixture(R"({"response":{"toolCalls":[{"arguments":{}}]}})"), "f.json: fixtures[1].response.toolCalls[0].name is missing"},
        {fixture(R"({"response":{"toolCalls":[{"name":"a","arguments":1}]}})"),
         "f.json: fixtures[1].response.toolCalls[0].arguments must be an object or a string, not number"},
        {fixture(R"({"response":{"error":{"status":200}}})"), "f.json: fixtures[1].response.error.status must be a status from 400 to 599, not 200"},
        {fixture(R"({"response":{"content":"a","error":{}}})"), "f.json: fixtures[1].response.error cannot stand with content or toolCalls"},
        {fixture(R"({"response":{"content":"a","status":500}})"), "f.json: fixtures[1].response.status goes with error only"},
        {fixture(R"({"response":{"content":"a"},"usage":"most"})"), "f.json: fixtures[1].usage must be \"worst_case\" or an object, not \"most\""},
        {fixture(R"({"response":{"content":"a"},"chunkSize":0})"), "f.json: fixtures[1].chunkSize must be at least 1"},
        {fixture(R"({"response":{"content":"a"},"fault":{"kind":"stal"}})"), "f.json: fixtures[1].fault.kind \"stal\" is not known; did you mean stall?"},
        {fixture(R"({"response":{"content":"a"},"fault":{}})"), "f.json: fixtures[1].fault.kind is missing"},
    };
    for (const auto& [text, wanted] : cases) EXPECT_EQ(complaint(text), wanted) << text;
}

TEST(MockFixtures, AFileThatCannotBeRead)
{
    const auto said = [](const std::string& path) -> std::string {
        try {
            load_mock_fixtures(path);
        } catch (const config_error& e) {
            return e.what();
        }
        return "accepted";
    };
    EXPECT_EQ(said("/no/such.json"), "cannot read /no/such.json: No such file or directory");
    EXPECT_EQ(said("/"), "cannot read /: Is a directory");
    EXPECT_EQ(said("/dev/null"), "/dev/null: not JSON at byte 0");
}

TEST(MockFixtures, FaultRates)
{
    mock_options o;
    parse_fault_rates("429=0.1,500=0.05,reset=0.01", o);
    ASSERT_EQ(o.fault_rates_.size(), 3u);
    EXPECT_EQ(o.fault_rates_[0].first.status, 429);
    EXPECT_EQ(o.fault_rates_[2].first.kind, mock_fault_kind::reset);
    EXPECT_DOUBLE_EQ(o.fault_rates_[1].second, 0.05);
    for (const char* bad : {"429", "200=0.1", "rest=0.1", "429=2", "429=x", "429=-0.1", "429=0.6,500=0.6", "=1"}) {
        mock_options ignored;
        EXPECT_THROW(parse_fault_rates(bad, ignored), config_error) << bad;
    }
}

}  // namespace mock_fixtures_test
}  // namespace
