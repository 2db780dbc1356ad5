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

// Each directory has two links to the next one: no directory leads to itself, and there are
// millions of paths.
TEST_F(ImageFiles, TooManyPathsToADirectoryAreRefused) {
  for (int level = 25; level > 0; --level) {
    fs::create_directory(place_ + "/set/" + std::to_string(level));
    for (const char* link : {"/a", "/b"})
      if (level < 25)
        fs::create_directory_symlink("../" + std::to_string(level + 1),
                                     place_ + "/set/" + std::to_string(level) + link);
  }
  try {
    list_image_files(place_ + "/set");
    ADD_FAILURE() << "all of them were listed";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("more than 1000 paths lead to that directory"));
  }
}

TEST_F(ImageFiles, AListMayBeginWithAByteOrderMark) {
  write("set/a.png", "a");
  write("list.txt", "\xef\xbb\xbfset/a.png\r\n");
  EXPECT_THAT(list_image_files(place_ + "/list.txt"), ElementsAre(place_ + "/set/a.png"));
}

TEST_F(ImageFiles, AListThatIsNoneIsNamed) {
  write("a", "a");
  const auto refusal = [&](const std::string& content) -> std::string {
    write("list.txt", content);
    try {
      list_image_files(place_ + "/list.txt");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  using testing::AllOf;
  EXPECT_THAT(refusal("a\nb.png\n"), AllOf(HasSubstr("/list.txt', line 2"), HasSubstr("there is no file")));
  EXPECT_THAT(refusal(std::string("a\na\0.png\n", 9)),
              AllOf(HasSubstr("/list.txt', line 2"), HasSubstr("zero byte")));
  // Each line would take far more memory than it has letters.
  std::string same;
  for (int i = 0; i < 2000; ++i) same += "a\n";
  EXPECT_THAT(refusal(same), HasSubstr("/list.txt' is no list of images"));
  EXPECT_EQ(refusal("a\na\n"), "");
}

}  // namespace
}  // namespace mox::data
