#include "moxing/image_sets/internal/set_files.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/base/error.h"
#include "tests/support/temporary_directory.h"

namespace mox::data::internal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A picture of a terabyte, which the disk does not hold.
TEST(SetFiles, OfHolesAreNotRead) {
  TemporaryDirectory directory;
  directory.write("0.jpg", "");
  std::filesystem::resize_file(directory.file("0.jpg"), uint64_t{1} << 40);
  const SetFiles files(directory.path(), {"0.jpg"});
  RecordBuffer buffer;
  EXPECT_THAT(message_of<IoError>([&] { files.read(0, &buffer); }),
              AllOf(HasSubstr("/0.jpg' has 1099511627776 bytes to be read at once, more than"),
                    HasSubstr("of memory that this process may have")));
}

}  // namespace
}  // namespace mox::data::internal
