#include "runtime/base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/input_file.h"
#include "runtime/base/local_name.h"
#include "runtime/base/new_file.h"
#include "runtime/base/opened_file.h"
#include "runtime/base/resource_limits.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

// A process that was killed as it wrote leaves its temporary file. In a container the next one has the same
// number, and so may one of another host have that writes to the same place.
TEST(WriteFileAtomically, PassesOverTheTemporaryFilesOfOthers) {
  constexpr int kLeftBehind = 50;
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/file";
  const auto temporary = [&](int number) {
    return path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(number);
  };
  for (int i = 0; i < kLeftBehind; ++i) std::ofstream(temporary(i)) << "half";
  write_file_atomically(path, "whole");
  EXPECT_EQ(read_file(path), "whole");
  for (int i = 0; i < kLeftBehind; ++i) EXPECT_EQ(read_file(temporary(i)), "half") << i;
  EXPECT_FALSE(std::filesystem::exists(temporary(kLeftBehind)));
}

TEST(ReadFile, OfHolesLargerThanMemoryIsRefused) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/holes";
  std::ofstream(path) << "a";
  std::filesystem::resize_file(path, machine_memory() + 1);
  try {
    read_file(path);
    ADD_FAILURE() << "was read";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("/holes' has "), std::string::npos) << error.what();
  }
}

// A name in a store must not lead to a directory "s3:" of this machine, nor to the answer that
// nothing is there.
TEST(LocalName, NamesInAStoreAreRefusedByAllThatOpensMakesOrLooksFor) {
  for (const std::string name :
       {"s3://bucket/key", "obs://bucket", "S3://b/k", "file:///tmp/x", "h-t.2+p://x"}) {
    EXPECT_THROW(is_there(name), InvalidArgument) << name;
    EXPECT_THROW(is_there_as_directory(name), InvalidArgument) << name;
    EXPECT_THROW(is_there_as_file(name), InvalidArgument) << name;
    EXPECT_THROW(read_file(name), InvalidArgument) << name;
    EXPECT_THROW(write_file_atomically(name, "x"), InvalidArgument) << name;
    EXPECT_THROW(make_directories(name), InvalidArgument) << name;
    EXPECT_THROW(open_kept_file(name), InvalidArgument) << name;
    EXPECT_THROW(InputFile{name}, InvalidArgument) << name;
    EXPECT_THROW(NewFile{name}, InvalidArgument) << name;
  }
  EXPECT_FALSE(std::filesystem::exists("s3:"));
  for (const char* name : {"", "a", "/a//b", "a/b://c", "3s://b", "://b", "s3:/b", "a b://c", "C:/x"})
    EXPECT_NO_THROW(require_local_name(name)) << name;
}

TEST(IsThere, AnswersForLinksThatLeadNowhere) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("file", "a"), loop = directory.file("loop"),
                    lost = directory.file("lost");
  std::filesystem::create_symlink(loop, loop);
  std::filesystem::create_symlink(directory.file("nothing"), lost);
  EXPECT_TRUE(is_there(file));
  EXPECT_TRUE(is_there_as_file(file));
  EXPECT_TRUE(is_there(directory.path()));
  EXPECT_TRUE(is_there_as_directory(directory.path()));
  EXPECT_TRUE(is_there(loop));
  EXPECT_FALSE(is_there_as_file(loop));
  EXPECT_FALSE(is_there_as_directory(loop));
  EXPECT_FALSE(is_there(lost));
  EXPECT_FALSE(is_there(file + "/below"));
}

TEST(ReadFile, TakesFilesWithoutASize) {
  EXPECT_NE(read_file("/proc/self/status").find("VmPeak"), std::string::npos);
}

}  // namespace
}  // namespace mox
