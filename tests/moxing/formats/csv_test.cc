#include "moxing/formats/csv.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/moxing/formats/temporary_directory.h"

namespace mox::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Csv, ReadsNumbers) {
  TemporaryDirectory directory;
  const Array array = read_csv(directory.write("x.csv", "a,b\r\n1, -2.5\r\n\r\n3e-1 ,4"), {.header = true});
  EXPECT_EQ(array.shape(), (Shape{2, 2}));
  EXPECT_THAT(array.values<float>(), ElementsAre(1, -2.5f, 0.3f, 4));
  EXPECT_EQ(parse_csv("1;2", {.delimiter = ';'}, "x").shape(), (Shape{1, 2}));
  EXPECT_EQ(parse_csv("", {}, "x").shape(), (Shape{0, 0}));
}

TEST(Csv, NamesTheCellThatIsBad) {
  const auto message = [](std::string_view text) {
    return message_of<DataError>([&] { parse_csv(text, {}, "dir/x.csv"); });
  };
  EXPECT_THAT(message("1,2\n3,x\n"),
              AllOf(HasSubstr("dir/x.csv"), HasSubstr("line 2, column 2"), HasSubstr("'x'")));
  EXPECT_THAT(message("1,2\n3\n"), HasSubstr("line 2: 1 numbers"));
  for (const char* bad : {"1,", "nan", "inf", "1e99", "0x10", "1 2", "\"1\""})
    EXPECT_THAT(message(bad), HasSubstr("line 1"));
}

}  // namespace
}  // namespace mox::data
