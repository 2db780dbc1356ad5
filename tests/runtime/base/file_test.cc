#include "runtime/base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

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

}  // namespace
}  // namespace mox
