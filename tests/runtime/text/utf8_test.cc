#include "runtime/text/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace mox {
namespace {

TEST(Utf8, EndsWhereItIsNone) {
  for (const char* text :
       {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(text)) << text;
  // Latin-1, cut off, overlong, a surrogate, beyond U+10FFFF, a continuation alone.
  for (const char* text : {"\xe9", "\xc3", "\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf",
                           "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xa9"})
    EXPECT_EQ(utf8_prefix(std::string("ab") + text + "c"), 2U) << text;
}

TEST(Utf8, CharactersComeBackFromTheirBytes) {
  for (const uint32_t expected :
       {0x0U, 0x61U, 0x7fU, 0x80U, 0xe9U, 0x7ffU, 0x800U, 0x200bU, 0xffffU, 0x10000U, 0x1f600U, 0x10ffffU}) {
    std::string text;
    append_utf8(expected, &text);
    uint32_t character = 0;
    EXPECT_EQ(first_character(text + "b", &character), text.size());
    EXPECT_EQ(character, expected);
  }
  uint32_t character = 0;
  EXPECT_EQ(first_character("\xe9t\xe9", &character), 0U) << "Latin-1";
}

TEST(Utf8, AByteOrderMarkIsPassedOverOnceAndAtTheBegin) {
  EXPECT_EQ(without_byte_order_mark("\xef\xbb\xbf\xef\xbb\xbf"
                                    "a"),
            "\xef\xbb\xbf"
            "a");
  for (const char* text : {"", "a\xef\xbb\xbf", "\xef\xbb"}) EXPECT_EQ(without_byte_order_mark(text), text);
}

}  // namespace
}  // namespace mox
