#include "mock_ledger.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace {
namespace mock_journal_test {

using namespace reagent;
using namespace reagent::testing;
using reagent::testing_detail::mock_ledger;

std::shared_ptr<mock_entry> request(std::string body)
{
    auto e = std::make_shared<mock_entry>();
    e->body = std::move(body);
    return e;
}

TEST(MockJournal, IsBoundedInBytes)
{
    EXPECT_EQ(mock_options().max_journal_bytes_, std::size_t{64} << 20);
    mock_ledger ledger(usd("1"), usd("1"), 10'000, 100);
    const std::string body(40, 'x');
    const std::shared_ptr<mock_entry> first = request(body), second = request(body), third = request(body), fourth = request(body);
    ledger.arrived(first, true);  // still open when the limit is passed
    ledger.arrived(second, true);
    ledger.ended(second, true, 0, 0, "complete", 0, 1);
    ledger.arrived(third, true);
    ledger.arrived(fourth, true);
    const std::vector<mock_entry> kept = ledger.journal();
    ASSERT_EQ(kept.size(), 4u);
    EXPECT_EQ(kept[0].body, body) << "an open request is read from its body";
    EXPECT_TRUE(kept[1].body.empty());
    EXPECT_TRUE(kept[1].body_dropped);
    EXPECT_EQ(kept[1].to_json()["body_dropped"], json(true));
    EXPECT_EQ(kept[1].to_json()["body_bytes"], json(40));
    EXPECT_EQ(kept[2].body, body);
    EXPECT_FALSE(kept[3].body_dropped);
    EXPECT_TRUE(kept[3].to_json()["body_dropped"].is_null());
    for (const auto& e : {first, third, fourth}) ledger.ended(e, true, 0, 0, "complete", 0, 1);
    ledger.arrived(request("y"), true);
    EXPECT_TRUE(ledger.journal()[0].body.empty()) << "the oldest goes first";
    EXPECT_EQ(ledger.journal()[3].body, body);
}

/// An entry that leaves by number takes its bytes along.
TEST(MockJournal, BytesLeaveWithTheirEntry)
{
    mock_ledger ledger(usd("1"), usd("1"), 2, 100);
    for (int i = 0; i < 50; ++i) {
        const std::shared_ptr<mock_entry> e = request(std::string(40, 'x'));
        ledger.arrived(e, true);
        ledger.ended(e, true, 0, 0, "complete", 0, 1);
    }
    ASSERT_EQ(ledger.journal().size(), 2u);
    for (const mock_entry& e : ledger.journal()) EXPECT_FALSE(e.body_dropped);
}

}  // namespace mock_journal_test
}  // namespace
