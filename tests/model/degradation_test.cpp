#include <reagent/model/degradation.hpp>

#include <gtest/gtest.h>

#include <array>

namespace {
namespace degradation_test {

using namespace reagent;
constexpr std::array<std::string_view, 2> shapes = {"A", "B"};

TEST(TemperatureFallback, ActsOnTheParameterNotOnItsValue)
{
    for (const char* text :
         {"`temperature` is deprecated for this model.",
          "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.", "TEMPERATURE must be omitted",
          "temperature isn't supported", "temperature is not allowed here", "only the default temperature works"})
        EXPECT_TRUE(says_temperature_unsupported(text)) << text;
    for (const char* text :
         {"temperature must be <= 2", "top_p is deprecated", "temperature: only numbers inside the range that this deployment's owner chose default",
          "temperature is commonly default", "temperature. only. default", ""})
        EXPECT_FALSE(says_temperature_unsupported(text)) << text;
}

TEST(TemperatureFallback, OnceAndOnlyFor400WithATemperature)
{
    constexpr std::string_view text = "temperature is deprecated";
    temperature_fallback none(false);
    EXPECT_FALSE(none.refused(400, text));
    temperature_fallback f(true);
    EXPECT_TRUE(f.send());
    EXPECT_FALSE(f.refused(422, text));
    EXPECT_TRUE(f.refused(400, text));
    EXPECT_FALSE(f.send());
    EXPECT_TRUE(f.dropped());
    EXPECT_FALSE(f.refused(400, text));
}

TEST(ThinkingLadder, WithoutModeThereIsNoStatus)
{
    thinking_ladder l;
    EXPECT_TRUE(l.members().empty());
    EXPECT_EQ(l.refused(400), thinking_ladder::verdict::fail);
    EXPECT_FALSE(l.accepted(thinking_signal::seen).has_value());
    EXPECT_FALSE(l.exhausted());
}

TEST(ThinkingLadder, WalksShapesThenPlain)
{
    thinking_ladder l(thinking_mode::off, shapes, {});
    EXPECT_EQ(l.members(), "A");
    EXPECT_EQ(l.refused(400), thinking_ladder::verdict::resend);
    EXPECT_EQ(l.members(), "B");
    EXPECT_EQ(l.refused(422), thinking_ladder::verdict::resend);
    EXPECT_TRUE(l.members().empty());
    EXPECT_TRUE(l.exhausted());
    EXPECT_EQ(l.accepted(thinking_signal::none), thinking_status::unsupported);
    EXPECT_FALSE(l.winner().has_value());
    EXPECT_EQ(l.refused(400), thinking_ladder::verdict::fail);
}

TEST(ThinkingLadder, OtherFailuresAreTheCallers)
{
    for (const int status : {401, 403, 404, 429, 500, 0}) {
        thinking_ladder l(thinking_mode::off, shapes, {});
        EXPECT_EQ(l.refused(status), thinking_ladder::verdict::fail) << status;
    }
}

TEST(ThinkingLadder, AWinnerThatFailsIsForgottenAndTheLadderStartsAgainOnce)
{
    thinking_ladder l(thinking_mode::off, shapes, 1);
    EXPECT_EQ(l.members(), "B");
    EXPECT_EQ(l.refused(400), thinking_ladder::verdict::resend);
    EXPECT_TRUE(l.winner_failed());
    EXPECT_EQ(l.members(), "A");
    EXPECT_EQ(l.winner(), 0U);
    EXPECT_EQ(l.refused(400), thinking_ladder::verdict::resend);
    EXPECT_EQ(l.refused(400), thinking_ladder::verdict::resend);
    EXPECT_TRUE(l.exhausted());
}

TEST(ThinkingLadder, StatusOfAcceptedShapes)
{
    const thinking_ladder on(thinking_mode::on, shapes, {}), off(thinking_mode::off, shapes, {});
    EXPECT_EQ(on.accepted(thinking_signal::none), thinking_status::applied);
    EXPECT_EQ(off.accepted(thinking_signal::none), thinking_status::applied);
    EXPECT_EQ(off.accepted(thinking_signal::seen), thinking_status::ignored);
    EXPECT_EQ(off.accepted(thinking_signal::unreadable), thinking_status::unknown);
    const thinking_ladder fixed = thinking_ladder::unswitchable(thinking_mode::on, "F");
    EXPECT_EQ(fixed.members(), "F");
    EXPECT_EQ(fixed.accepted(thinking_signal::seen), thinking_status::unsupported);
    EXPECT_FALSE(fixed.exhausted());
}

}  // namespace degradation_test
}  // namespace
