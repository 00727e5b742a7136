#include "terminal.hpp"

#include <gtest/gtest.h>

namespace {
namespace terminal_test {

TEST(Terminal, WhatDrivesATerminalIsDropped)
{
    using reagent_app::without_controls;
    EXPECT_EQ(without_controls("a\x1b[31mb\r\x07"
                               "c\td\n"),
              "a[31mbc\td\n");
    EXPECT_EQ(without_controls("a\x7f"
                               "b"),
              "ab")
        << "DEL";
    EXPECT_EQ(without_controls("a\xc2\x80"
                               "b\xc2\x9b"
                               "31mc\xc2\x9f"
                               "d"),
              "ab31mcd")
        << "U+0080 to U+009F";
    EXPECT_EQ(without_controls("\xc2\xa0\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "\xc2\xa0\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") << "text stays";
    EXPECT_EQ(without_controls("\xc2"), "\xc2");
}

}  // namespace terminal_test
}  // namespace
