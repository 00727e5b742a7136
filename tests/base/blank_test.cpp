#include <reagent/base/blank.hpp>

#include <gtest/gtest.h>

namespace {
namespace blank_test {

using reagent::is_blank;

TEST(Blank, WhiteSpaceOfAnyScript)
{
    EXPECT_TRUE(is_blank(""));
    EXPECT_TRUE(is_blank(" \t\n\v\f\r"));
    EXPECT_TRUE(is_blank("\u00A0\u1680\u2003\u2028\u2029\u202F\u205F\u3000\uFEFF"));
    EXPECT_FALSE(is_blank(" x "));
    EXPECT_FALSE(is_blank("\u200B")) << "zero width space is none of ECMAScript's";
    EXPECT_FALSE(is_blank("\xC2"));
}

}  // namespace blank_test
}  // namespace
