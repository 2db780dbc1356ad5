#include "runtime/base/build_id.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

namespace mox {
namespace {

// What binutils reads in the file.
std::string build_id_by_readelf(const std::string& path) {
  std::string text;
  FILE* pipe = popen(("readelf -n '" + path + "' 2>/dev/null").c_str(), "r");
  if (!pipe) return "";
  std::array<char, 256> part;
  while (fgets(part.data(), part.size(), pipe)) text += part.data();
  pclose(pipe);
  const std::string label = "Build ID: ";
  const size_t at = text.find(label);
  if (at == std::string::npos) return "";
  const size_t first = at + label.size();
  return text.substr(first, text.find_first_of(" \n", first) - first);
}

const int kInThisProgram = 0;

TEST(BuildId, IsAHashInEachProgram) {
  const std::string id = program_build_id();
  EXPECT_GE(id.size(), 16U) << "programs are linked with --build-id";
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
  EXPECT_EQ(build_id_of(&kInThisProgram), id);
  EXPECT_EQ(library_build_id(), id) << "moxing is linked into this program";
}

TEST(BuildId, IsTheOneThatReadelfFinds) {
  if (std::system("readelf --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "needs readelf (binutils)";
  EXPECT_EQ(program_build_id(), build_id_by_readelf(std::filesystem::read_symlink("/proc/self/exe")));

  Dl_info other;
  const void* of_libc = dlsym(RTLD_DEFAULT, "getpid");
  ASSERT_NE(dladdr(of_libc, &other), 0);
  EXPECT_EQ(build_id_of(of_libc), build_id_by_readelf(other.dli_fname));
  EXPECT_NE(build_id_of(of_libc), program_build_id());
}

TEST(BuildId, OfAnAddressOfNoObjectIsNone) {
  const auto on_the_heap = std::make_unique<int>(1);
  EXPECT_EQ(build_id_of(on_the_heap.get()), "");
  EXPECT_EQ(build_id_of(nullptr), "");
}

}  // namespace
}  // namespace mox
