#include "program.hpp"

#include <gmock/gmock.h>

namespace reagent::apps_test {
namespace {
namespace help_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Help, EveryCommandHasHelpWithAnExample)
{
    const std::vector<std::vector<std::string>> commands{{},
                                                         {"run"},
                                                         {"mock"},
                                                         {"demo"},
                                                         {"models"},
                                                         {"doctor"},
                                                         {"tools"},
                                                         {"tools", "list"},
                                                         {"tools", "show"},
                                                         {"tools", "invoke"},
                                                         {"provider"},
                                                         {"provider", "decode"},
                                                         {"provider", "encode"}};
    for (std::vector<std::string> command : commands) {
        std::string name = "reagent";
        for (const std::string& word : command) name += " " + word;
        command.push_back("--help");
        const program_result r = reagent_run(command);
        EXPECT_EQ(r.status, 0) << name;
        EXPECT_THAT(r.out, HasSubstr("Example")) << name;
        EXPECT_THAT(r.out, HasSubstr(name)) << name;
        EXPECT_THAT(r.err, IsEmpty()) << name;
    }
}

TEST(Help, TheTopNamesEveryCommandAndTheExitStatus)
{
    const program_result r = reagent_run({"--help"});
    for (const char* name : {"run", "mock", "demo", "models", "tools", "provider", "doctor"}) EXPECT_THAT(r.out, HasSubstr("\n  " + std::string(name) + " "));
    EXPECT_THAT(r.out, HasSubstr("Exit status: 0 success, 1 the work failed, 2 bad usage"));
    EXPECT_THAT(r.out, Not(HasSubstr("die-with-parent"))) << "what only our children need is not shown";
}

TEST(Help, Version)
{
    const program_result r = reagent_run({"--version"});
    EXPECT_EQ(r.status, 0);
    EXPECT_THAT(r.out, ::testing::MatchesRegex("reagent [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

}  // namespace help_test
}  // namespace
}  // namespace reagent::apps_test
