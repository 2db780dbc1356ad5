// Names and messages with what a terminal would obey.
#include "runtime/text/printable.h"

#include <gtest/gtest.h>

namespace mox {
namespace {

TEST(Printable, ShowsControlCharactersOfNames) {
  EXPECT_EQ(printable("daisy.jpg"), "daisy.jpg");
  EXPECT_EQ(printable("\x1b[2J\x1b]0;title\a"), "\\x1b[2J\\x1b]0;title\\x07");
  EXPECT_EQ(printable("a\nerror: b\r\tc\x7f"), "a\\nerror: b\\r\\tc\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u{9b}31m");  // what a terminal of eight bits takes for ESC [
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "gpj.exe"),
            "a\\u{202e}gpj.exe");
  EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x80\xa8"), "\\u{2066}\\u{2028}");
}

TEST(Printable, KeepsLettersOfAllLanguages) {
  for (const char* name : {"Müller", "日本", "\xf0\x9f\x98\x80", "\xc2\xa0", "a\\nb", "'\"", "עברית"})
    EXPECT_EQ(printable(name), name);
}

TEST(Printable, ShowsBytesThatAreNoText) {
  EXPECT_EQ(printable("M\xfcller"), "M\\xfcller");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");  // an overlong form
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("a\xe2\x82"), "a\\xe2\\x82");
}

TEST(Printable, KeepsTheLinesOfTexts) { EXPECT_EQ(printable_lines("a\tb\nc\x1b\n"), "a\tb\nc\\x1b\n"); }

TEST(Printable, NoLineOfAMessageLooksLikeAnother) {
  EXPECT_EQ(printable_message("'a\nerror: all is lost' is missing"), "'a\n  error: all is lost' is missing");
  EXPECT_EQ(printable_message("missing:\n  a\n\n  b\n"), "missing:\n  a\n\n  b\n");
  EXPECT_EQ(printable_message("a\n b\n\nc\r\nd"), "a\n   b\n\n  c\\r\n  d");
}

}  // namespace
}  // namespace mox
