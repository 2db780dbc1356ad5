// Images without labels: a directory, a list, a file.
#include "moxing/image_sets/image_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/error.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class ImageFiles : public testing::Test {
 protected:
  ImageFiles() { fs::create_directories(place_ + "/set/part"); }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(place_ + "/" + name, std::ios::binary) << content;
  }
  const TemporaryDirectory directory_;
  const std::string place_ = fs::canonical(directory_.path()).string();
};

TEST_F(ImageFiles, LinksBackAreFollowedOnce) {
  write("set/a.png", "a");
  write("set/part/b.png", "b");
  fs::create_directory_symlink(place_ + "/set", place_ + "/set/part/back");
  fs::create_directory_symlink(".", place_ + "/set/self");
  testing::internal::CaptureStderr();
  const auto paths = list_image_files(place_ + "/set");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(paths, ElementsAre(place_ + "/set/a.png", place_ + "/set/part/b.png"));
  EXPECT_THAT(said, testing::AllOf(HasSubstr("/set/part/back' is a link back to"), HasSubstr("/set/self'")));
}

TEST_F(ImageFiles, AListMayBeginWithAByteOrderMark) {
  write("set/a.png", "a");
  write("list.txt", "\xef\xbb\xbfset/a.png\r\n");
  EXPECT_THAT(list_image_files(place_ + "/list.txt"), ElementsAre(place_ + "/set/a.png"));
}

}  // namespace
}  // namespace mox::data
