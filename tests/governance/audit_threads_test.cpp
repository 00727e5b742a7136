#include <reagent/governance/audit_log.hpp>

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include <unistd.h>

namespace {
namespace audit_threads_test {

using namespace reagent;

constexpr int writers = 4;
constexpr int rounds = 250;

/// Two handles on one log and two logs on one file: whole lines only, each writer's in order.
TEST(AuditThreads, ConcurrentWritersLeaveWholeLinesOnly)
{
    char name[] = "/tmp/reagent_audit_XXXXXX";
    ::close(::mkstemp(name));
    {
        const audit_log one = audit_log::file(name), two = audit_log::file(name);
        std::vector<std::thread> threads;
        for (int w = 0; w < writers; ++w)
            threads.emplace_back([w, log = w % 2 ? one : two] {
                for (int i = 0; i < rounds; ++i)
                    log.write({json::object().set("w", w).set("i", 2 * i).set("reason", std::string(static_cast<std::size_t>(i) * 17 % 5000, 'x')),
                               json::object().set("w", w).set("i", 2 * i + 1)});
            });
        for (std::thread& t : threads) t.join();
        std::size_t skipped = 9;
        const std::vector<json> lines = one.read(&skipped);
        EXPECT_EQ(skipped, 0u);
        EXPECT_EQ(lines.size(), static_cast<std::size_t>(2 * writers * rounds));
        std::map<std::int64_t, std::int64_t> next;
        for (const json& l : lines) {
            std::int64_t& expected = next[*l["w"].get_int64()];
            EXPECT_EQ(l["i"].get_int64(), expected);
            ++expected;
        }
    }
    ::unlink(name);
}

TEST(AuditThreads, AMemoryLogTakesAll)
{
    const audit_log log = audit_log::in_memory();
    std::vector<std::thread> threads;
    for (int w = 0; w < writers; ++w)
        threads.emplace_back([log] {
            for (int i = 0; i < rounds; ++i) log.write({json::object().set("i", i)});
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(log.read().size(), static_cast<std::size_t>(writers * rounds));
}

}  // namespace audit_threads_test
}  // namespace
