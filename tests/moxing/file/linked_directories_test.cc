// Links among directories, which can make more paths than can be listed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "moxing/file/file.h"
#include "moxing/file/path_counts.h"
#include "runtime/base/error.h"
#include "tests/support/temporary_directory.h"

namespace mox::file {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Each directory has two links to the next one.
void double_up(const TemporaryDirectory& directory, int levels) {
  for (int level = 0; level < levels; ++level) {
    fs::create_directories(directory.file(fmt::format("d{}", level + 1)));
    for (const char* link : {"a", "b"}) {
      fs::create_directories(directory.file(fmt::format("d{}", level)));
      fs::create_directory_symlink(fmt::format("../d{}", level + 1),
                                   directory.file(fmt::format("d{}/{}", level, link)));
    }
  }
}

TEST(LinkedDirectories, TooManyPathsAreRefused) {
  const TemporaryDirectory directory;
  double_up(directory, 25);
  const auto is_named =
      AllOf(HasSubstr("more than 1000 paths lead to that directory"), HasSubstr("Remove links"));
  EXPECT_THAT(message_of<IoError>([&] { list_directory(directory.file("d0"), {.recursive = true}); }),
              is_named);
  EXPECT_THAT(message_of<IoError>([&] { glob(directory.file("d0/**")); }), is_named);
  EXPECT_THAT(message_of<IoError>([&] { glob(directory.file("d0/**/x.txt")); }), is_named);
}

TEST(LinkedDirectories, AreListedUnderEachOfTheirNames) {
  const TemporaryDirectory directory;
  double_up(directory, 9);
  directory.write("d9/x.txt", "x");
  EXPECT_EQ(glob(directory.file("d0/**/x.txt")).size(), 512u);
  directory.write("two/real/y.txt", "y");
  fs::create_directory_symlink("real", directory.file("two/link"));
  EXPECT_THAT(list_directory(directory.file("two"), {.recursive = true, .skip_dir = true}),
              ElementsAre("link/y.txt", "real/y.txt"));
}

TEST(LinkedDirectories, AreCountedOneByOne) {
  PathCounts counts;
  for (int i = 0; i < kMostPathsToADirectory; ++i)
    for (const char* directory : {"one", "another"}) counts.add(directory, "path");
  EXPECT_THROW(counts.add("one", "path"), IoError);
}

}  // namespace
}  // namespace mox::file
