// A directory whose listing fails in the middle, as that of a file system on a damaged disk, or of a server
// that goes away. Defines readdir for the whole program: one file of a test program includes it.
#pragma once

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <string>

namespace mox {

// While it lives, listings of the directory end with EIO behind `entries` of its entries, "." and ".." among
// them. One at a time.
class CutListing {
 public:
  CutListing(const std::string& directory, int entries) {
    struct stat status {};
    ::stat(directory.c_str(), &status);
    entries_left = entries;
    inode = status.st_ino;
  }
  ~CutListing() { inode = 0; }
  CutListing(const CutListing&) = delete;
  CutListing& operator=(const CutListing&) = delete;

  static bool ends(DIR* directory) {
    if (inode == 0) return false;
    struct stat status {};
    return ::fstat(::dirfd(directory), &status) == 0 && status.st_ino == inode && entries_left-- <= 0;
  }

 private:
  static inline std::atomic<ino_t> inode = 0;
  static inline std::atomic<int> entries_left = 0;
};

}  // namespace mox

extern "C" dirent* readdir(DIR* directory) {
  using Function = dirent* (*)(DIR*);
  static const auto library = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "readdir"));
  if (!mox::CutListing::ends(directory)) return library(directory);
  errno = EIO;
  return nullptr;
}
