// The program in the hands of someone who means no good, or of a script that forgot something.
#include "program.hpp"

#include <reagent/base/json.hpp>

#include <gmock/gmock.h>

#include <csignal>

namespace reagent::apps_test {
namespace {
namespace hostile_test {

using ::testing::HasSubstr;
using ::testing::Not;

/// A shell's view of the program, which is `"$0"` in the line.
program_result shell(const std::string& line)
{
    program p("/bin/sh", {"-c", line, REAGENT_PROGRAM});
    return p.run();
}

void expect_one_line(const program_result& r, int status, const std::string& part, const std::string& about)
{
    EXPECT_EQ(r.status, status) << about << "\n" << r.err;
    EXPECT_EQ(r.messages().size(), 1U) << about << "\n" << r.err;
    EXPECT_THAT(r.err, HasSubstr(part)) << about;
}

TEST(Hostile, OutputThatCannotBeWrittenIsFailedWork)
{
    for (const std::string command :
         {"models", "models --json", "tools list", "tools show think", "doctor", "--version", "--help", "run --help", "mock --port 0"})
        for (const std::string where : {">/dev/full", ">&-"}) {
            const std::string line = "\"$0\" " + command + " " + where;
            expect_one_line(shell(line), 1, "standard output cannot be written", line);
        }
}

TEST(Hostile, ABatchEndsWhenNobodyReadsItsAnswers)
{
    expect_one_line(shell("yes '{\"id\":1}' | \"$0\" provider decode --batch >/dev/full"), 1, "standard output cannot be written", "endless batch");
    // A reader that goes away ends the program by SIGPIPE, or by the failed write where that is ignored.
    const program_result ignored = shell("trap '' PIPE; { yes '{\"id\":1}' | \"$0\" provider decode --batch; echo \"status $?\" >&2; } | head -n 1");
    EXPECT_THAT(ignored.err, HasSubstr("standard output cannot be written")) << ignored.err;
    EXPECT_THAT(ignored.err, HasSubstr("status 1"));
}

TEST(Hostile, ClosedDescriptorsAreNotGivenToSocketsAndFiles)
{
    const program_result r = shell("\"$0\" demo --agents 20 --json <&- 2>&-");
    EXPECT_EQ(r.status, 0) << r.out;
    EXPECT_EQ(json::parse_or_throw(r.out, "the output")["agents"].get_int64(), 20);
    const mock_process mock(R"({"fixtures":[{"response":{"content":"hello"}}]})");
    const program_result none = shell("\"$0\" run hi --model m --base-url " + mock.base_url() + " >&-");
    EXPECT_EQ(none.status, 1);
    EXPECT_THAT(none.err, HasSubstr("standard output cannot be written"));
    expect_one_line(shell("\"$0\" run --model m --base-url " + mock.base_url() + " <&-"), 2, "standard input: cannot be read", "no input");
    expect_one_line(shell("\"$0\" provider decode --batch <&-"), 2, "standard input: cannot be read", "no lines");
    expect_one_line(shell("\"$0\" tools invoke --batch </"), 2, "standard input: cannot be read", "a directory");
}

TEST(Hostile, WhatHasNoEndIsNotReadToItsEnd)
{
    const std::string base = "--base-url http://127.0.0.1:9/v1";
    expect_one_line(shell("\"$0\" run hi -c /dev/zero " + base), 2, "/dev/zero: is longer than", "configuration");
    expect_one_line(shell("\"$0\" run hi --key-file /dev/zero " + base), 2, "/dev/zero", "key");
    expect_one_line(shell("\"$0\" run " + base + " </dev/zero"), 2, "standard input: is longer than", "question");
    expect_one_line(shell("\"$0\" mock --fixtures /dev/zero"), 2, "/dev/zero: is longer than", "fixtures");
    expect_one_line(shell("\"$0\" tools invoke calculate @/dev/zero"), 2, "/dev/zero: is longer than", "arguments");
}

TEST(Hostile, NumbersOfFlagsAreBounded)
{
    for (const std::string flag :
         {"--timeout-ms 18446744073709551615", "--timeout-ms -1", "--deadline-ms 9223372036854775807", "--max-tokens -5", "--max-tokens 18446744073709551615",
          "--max-total-tokens 18446744073709551615", "--rates nan 1", "--rates inf 1", "--rates 1e308 1", "--tool-concurrency -1"}) {
        const program_result r = shell("\"$0\" run hi --model m --base-url http://127.0.0.1:9/v1 " + flag);
        expect_one_line(r, 2, flag.substr(0, flag.find(' ')), flag);
    }
}

TEST(Hostile, AnEmptyValueIsNotLeftOutInSilence)
{
    for (const std::string option : {"-c", "--provider", "--model", "--base-url", "--audit", "--key-file", "--ca-file"})
        expect_one_line(reagent_run({"run", "hi", option, ""}), 2, option == "-c" ? "--config: the value is empty" : option + ": the value is empty", option);
    for (const std::string option : {"--fixtures", "--journal"})
        expect_one_line(reagent_run({"mock", "--port", "0", option, ""}), 2, option + ": the value is empty", option);
}

TEST(Hostile, AKeyOfControlCharactersIsRefusedAndNotShown)
{
    for (const std::string key : {"sk-SECRET\nX-Evil: 1", "sk-SECRET\x1b[31m", "sk-SEC\tRET", "sk-SECRET\x7f"}) {
        program p({"run", "hi", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"});
        p.set("OPENAI_API_KEY", key);
        const program_result r = p.run();
        expect_one_line(r, 2, "apiKey must be one line of text", "a key");
        EXPECT_THAT(r.err, Not(HasSubstr("SEC")));
    }
}

TEST(Hostile, AByteOrderMarkIsLetPass)
{
    const std::string mark = "\xEF\xBB\xBF";
    const scratch_file config(mark + R"({"modle":"x"})");
    expect_one_line(reagent_run({"run", "hi", "-c", config.path()}), 2, "unknown key \"modle\"", "configuration");
    const scratch_file fixtures(mark + R"({"fixtures":[{}]})");
    expect_one_line(reagent_run({"mock", "--port", "0", "--fixtures", fixtures.path()}), 2, "fixtures[0].response is missing", "fixtures");
}

TEST(Hostile, PricesOfTheMockAreAmounts)
{
    for (const std::string option : {"--input-rate", "--output-rate"})
        for (const std::string value : {"x", "-1", "nan"})
            expect_one_line(reagent_run({"mock", "--port", "0", option, value}), 2, option + " must be an amount of dollars", option + value);
}

TEST(Hostile, PausesOfFixturesAreBounded)
{
    for (const std::string key : {"latency", "latency_ms", "gap_ms"}) {
        const scratch_file file(R"({"fixtures":[{"response":{"content":"x"},")" + key + R"(":18446744073709551615}]})");
        const program_result r = reagent_run({"mock", "--port", "0", "--fixtures", file.path()});
        expect_one_line(r, 2, "fixtures[0]." + key + " must be at most a day", key);
    }
}

TEST(Hostile, AFixtureCannotWriteToTheTerminal)
{
    const scratch_file file("{\"fixtures\":[{\"a\\n\\u001b[31mb\":1}]}");
    const program_result r = reagent_run({"mock", "--port", "0", "--fixtures", file.path()});
    expect_one_line(r, 2, "is not known", "a key with a line break");
    EXPECT_THAT(r.err, Not(HasSubstr("\x1b")));
}

TEST(Hostile, AJournalThatCannotBeWrittenIsSaidOnce)
{
    program mock({"mock", "--port", "0", "--journal", "/dev/full"});
    mock.start();
    ASSERT_TRUE(mock.wait_for_output("\n"));
    std::string base = mock.output().substr(mock.output().rfind(' ') + 1);
    base.pop_back();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(reagent_run({"run", "hi", "--model", "m", "--base-url", base}).status, 0);
    mock.signal(SIGTERM);
    const program_result r = mock.wait();
    EXPECT_EQ(r.messages().size(), 2U) << r.err;
    EXPECT_THAT(r.err, HasSubstr("/dev/full: the journal cannot be written"));
}

}  // namespace hostile_test
}  // namespace
}  // namespace reagent::apps_test
