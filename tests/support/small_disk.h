// A small tmpfs, mounted for one test: a disk that can be full or read-only, also for root.
#pragma once

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace mox {

class SmallDisk {
 public:
  // `options` as of mount(8) for tmpfs: "size=256k". The mount is seen by this thread and those that it
  // starts alone, and ends with the object.
  explicit SmallDisk(const std::string& options)
      : path_((std::filesystem::temp_directory_path() / "mox-disk-").string() + std::string(6, 'X')) {
    if (!::mkdtemp(path_.data())) return;
    // A mount namespace of our own. In a chroot "/" is no mount, so propagation cannot be switched off: the
    // mount may then be seen outside, until the destructor takes it away.
    if (::unshare(CLONE_NEWNS) != 0) return;
    ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    mounted_ = ::mount("moxing_test", path_.c_str(), "tmpfs", 0, options.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
    std::error_code stays;
    std::filesystem::remove(path_, stays);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }  // false without the privilege to mount
  const std::string& path() const { return path_; }
  bool make_read_only() const {
    return ::mount("moxing_test", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }

 private:
  std::string path_;
  bool mounted_ = false;
};

}  // namespace mox

// A test that needs a SmallDisk says that it did not run when it cannot have one.
#define SKIP_UNLESS_MOUNTED(disk) \
  if (!(disk).mounted()) GTEST_SKIP() << "needs root (CAP_SYS_ADMIN) to mount a tmpfs: the test did not run"
