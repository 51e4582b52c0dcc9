// SPDX-License-Identifier: Apache-2.0
#include "base/printable_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"

namespace railhead {
namespace {

TEST(PrintableText, LeavesWhatPeopleWrite) {
  for (const std::string text : {"", "rail 3 is down: cause \"cable\" \\ 100 %", "Größe", "叶",
                                 "क्‍ष", "🙂", "a\xc2\xa0z"}) {
    EXPECT_EQ(PrintableText(text), text);
    EXPECT_TRUE(IsPrintableText(text)) << text;
  }
}

TEST(PrintableText, EscapesWhatControlsOrDeceives) {
  EXPECT_EQ(PrintableText("\x1b]52;c;aGk=\a"), "\\x1b]52;c;aGk=\\x07");
  EXPECT_EQ(PrintableText("a\nb\rc\td\x7f"), "a\\nb\\rc\\td\\x7f");
  EXPECT_EQ(PrintableText("\xc2\x9b"
                          "31m"),
            "\\x9b31m")
      << "C1 as UTF-8";
  EXPECT_EQ(PrintableText("\x9b"
                          "31m"),
            "\\x9b31m")
      << "C1 as a byte";
  EXPECT_EQ(PrintableText("a\xe2\x80\xae"
                          "b"),
            "a\\u202eb")
      << "right-to-left override";
  EXPECT_EQ(PrintableText("\xe2\x81\xa6"), "\\u2066");
  EXPECT_EQ(PrintableText("\xe2\x80\xa8"), "\\u2028");
  EXPECT_EQ(PrintableText("\xef\xbb\xbf"), "\\ufeff");
  EXPECT_EQ(PrintableText("\xf3\xa0\x81\x81"), "\\U000e0041") << "a tag";
  EXPECT_EQ(PrintableText("\xef\xbf\xbe"), "\\ufffe") << "not a character of XML";
  EXPECT_EQ(PrintableText(std::string("a\0b", 3)), "a\\x00b");
}

TEST(PrintableText, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(PrintableText("\xff"), "\\xff");
  EXPECT_EQ(PrintableText("\xc3"), "\\xc3") << "not complete";
  EXPECT_EQ(PrintableText("\xc0\x9b"), "\\xc0\\x9b") << "overlong";
  EXPECT_EQ(PrintableText("\xe0\x80\x9b"), "\\xe0\\x80\\x9b") << "overlong";
  EXPECT_EQ(PrintableText("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(PrintableText("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond U+10FFFF";
}

TEST(PrintableText, CutsBetweenCharacters) {
  EXPECT_EQ(PrintableText("abcdef", 6), "abcdef");
  EXPECT_EQ(PrintableText("abcdefg", 6), "abc...");
  EXPECT_EQ(PrintableText("äöüß", 6), "ä...") << "no half of one";
  EXPECT_EQ(PrintableText("ab\x1b"
                          "cdef",
                          8),
            "ab...")
      << "no half of an escape";
  EXPECT_EQ(PrintableText("abcd", 3), "...");
}

TEST(PrintableText, LinesKeepTheirEnds) {
  EXPECT_EQ(PrintableLines("a\x1b\nb\r\n"), "a\\x1b\nb\\r\n");
}

// Any bytes: what comes out has no unfit character, is the same when it is done again, and fits.
TEST(PrintableText, HoldsForRandomBytes) {
  std::mt19937 random(24);
  const std::string pieces[] = {"\x1b[2J",      "\xc2\x9b", "\xe2\x80\xae", "\xe2\x81\xa9",
                                "\xf0\x9f\x99", "ä",        "🙂",         "\n",
                                "\\",           "x"};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (uint32_t i = random() % 12; i > 0; --i) {
      if (random() % 2 == 0) {
        text += pieces[random() % std::size(pieces)];
      } else {
        text += static_cast<char>(random() % 256);
      }
    }
    const std::string shown = PrintableText(text);
    ASSERT_EQ(PrintableText(shown), shown);
    for (size_t i = 0; i < shown.size(); ++i) {
      const auto byte = static_cast<unsigned char>(shown[i]);
      ASSERT_GE(byte, 0x20);
      ASSERT_NE(byte, 0x7f);
      // C1 would be C2 80 to C2 9F; directions are E2 80 8E to AE and E2 81 A6 to A9.
      if (i + 1 < shown.size()) {
        ASSERT_FALSE(byte == 0xc2 && shown[i + 1] < '\xa0') << shown;
      }
      ASSERT_NE(shown.substr(i, 3), "\xe2\x80\xae");
      ASSERT_NE(shown.substr(i, 3), "\xe2\x81\xa9");
    }
    const size_t most = 3 + random() % 20;
    const std::string cut = PrintableText(text, most);
    ASSERT_LE(cut.size(), most);
    ASSERT_EQ(PrintableText(cut), cut);
  }
}

}  // namespace
}  // namespace railhead
