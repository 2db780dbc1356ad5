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

// The number of a process, and how many files it has written, can be foreseen: somebody else could make files
// of all the names that come next.
TEST(WriteFileAtomically, UsesNoNameThatOthersKnowBeforehand) {
  constexpr int kMade = 10'200;
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/file";
  const auto foreseen = [&](int number) {
    return path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(number);
  };
  for (int i = 0; i < kMade; ++i) std::ofstream(foreseen(i)) << "another's";
  write_file_atomically(path, "whole");
  EXPECT_EQ(read_file(path), "whole");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) files += entry.exists();
  EXPECT_EQ(files, kMade + 1);
  EXPECT_EQ(read_file(foreseen(0)), "another's");
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
