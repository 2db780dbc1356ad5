// Text within the width of a terminal.
#include "moxing/console/wrapped_text.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace mox {
namespace {

TEST(WrappedText, BreaksAtBlanks) {
  EXPECT_EQ(wrapped("one two three", 2, 9), "  one two\n  three\n");
  EXPECT_EQ(wrapped("averylongword x", 2, 9), "  averylongword\n  x\n");
  EXPECT_EQ(wrapped("", 2, 9), "  \n");
}

TEST(WrappedText, KeepsTheColumnsOfALine) {
  EXPECT_EQ(wrapped_lines("short\n\n  -n INT   the number of them all\nlast", 24),
            "short\n\n  -n INT   the number of\n           them all\nlast\n");
  EXPECT_EQ(wrapped_lines("  --a-long-name TEXT  what it is for\n", 20),
            "  --a-long-name TEXT\n     what it is for\n");
  EXPECT_EQ(wrapped_lines("            what stands far right\n", 20), "     what stands far\n     right\n");
  EXPECT_EQ(wrapped_lines("a line without columns\n", 12), "a line\nwithout\ncolumns\n");
}

TEST(WrappedText, TheEnvironmentNamesTheWidth) {
  const auto width_with = [](const char* columns) {
    ::setenv("COLUMNS", columns, 1);
    const size_t width = text_width();
    ::unsetenv("COLUMNS");
    return width;
  };
  EXPECT_EQ(width_with("57"), 57U);
  EXPECT_EQ(width_with("7"), 40U);
  EXPECT_EQ(width_with("700"), 120U);
  const size_t without = text_width();
  for (const char* nonsense : {"", "x", "-3", "50x"}) EXPECT_EQ(width_with(nonsense), without) << nonsense;
}

TEST(WrappedLines, OfBlanksAloneAreEmpty) {
  EXPECT_EQ(wrapped_lines(std::string(50, ' ') + "\nnext", 20), "\nnext\n");
}

}  // namespace
}  // namespace mox
