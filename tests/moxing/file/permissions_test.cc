// Who may read what is copied and moved on disks: nobody who could not before, on the way neither.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/temporary_directory.h"

namespace mox::file {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

dev_t disk_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_dev : 0;
}

class Permissions : public testing::Test {
 protected:
  Permissions() {
    write(here("from/private/deep/a"), "abc");
    write(here("from/shared/b"), "b");
    for (const auto& [name, mode] :
         {std::pair("from/private/deep/a", 0640), std::pair("from/private/deep", 0500),
          std::pair("from/private", 0700), std::pair("from/shared", 0750)})
      ::chmod(here(name).c_str(), mode);
  }
  ~Permissions() override {
    ::chmod(here("from/private/deep").c_str(), 0700);
    std::filesystem::remove_all(elsewhere_);
  }
  std::string here(const std::string& name) const { return directory_.file(name); }

  TemporaryDirectory directory_;
  const std::string elsewhere_ = fmt::format("/dev/shm/mox-permissions-{}", ::getpid());
};

TEST_F(Permissions, OfDirectoriesThatAreCopiedAreNotWidened) {
  const mode_t before = ::umask(022);
  copy_parallel(here("from"), here("to"));
  EXPECT_EQ(mode_of(here("to/private")), 0700u);
  EXPECT_EQ(mode_of(here("to/private/deep")), 0700u);  // what is copied later has to get in
  EXPECT_EQ(mode_of(here("to/shared")), 0750u);
  EXPECT_EQ(mode_of(here("to/private/deep/a")), 0640u);
  ::chmod(here("from").c_str(), 0700);
  copy_parallel(here("from"), here("new/top"));
  EXPECT_EQ(mode_of(here("new/top")), 0700u);
  EXPECT_EQ(mode_of(here("new")), 0755u);
  // One that is there has the permissions that it has.
  ::chmod(here("to/shared").c_str(), 0755);
  copy_parallel(here("from"), here("to"));
  EXPECT_EQ(mode_of(here("to/shared")), 0755u);
  ::umask(before);
}

// The same of those that a list of files leads to.
TEST_F(Permissions, OfDirectoriesOfListedFilesAreNotWidened) {
  const mode_t before = ::umask(022);
  EXPECT_THROW(copy_parallel(here("from"), here("to"),
                             {.file_list = {"private/deep/a", "shared/b", "private/none", "no/such"}}),
               IoError);
  EXPECT_EQ(mode_of(here("to/private")), 0700u);
  EXPECT_EQ(mode_of(here("to/private/deep")), 0700u);
  EXPECT_EQ(mode_of(here("to/shared")), 0750u);
  EXPECT_EQ(read(here("to/private/deep/a")), "abc");
  EXPECT_EQ(read(here("to/shared/b")), "b");
  // What is in the way of a directory is named with the file.
  write(here("taken/private"), "a file");
  EXPECT_THAT(message_of<IoError>([&] {
                copy_parallel(here("from"), here("taken"), {.file_list = {"private/deep/a", "shared/b"}});
              }),
              testing::HasSubstr("private/deep/a: "));
  EXPECT_EQ(mode_of(here("taken/shared")), 0750u);
  ::umask(before);
}

TEST_F(Permissions, OfWhatIsMovedToAnotherDiskStay) {
  if (disk_of("/dev/shm") == 0 || disk_of("/dev/shm") == disk_of(directory_.path()))
    GTEST_SKIP() << "needs another disk at /dev/shm";
  ::chmod(here("from").c_str(), 0711);
  if (::getuid() != 0) ::chmod(here("from/private/deep").c_str(), 0700);  // else the source could not go
  const mode_t deep = mode_of(here("from/private/deep"));
  rename(here("from"), elsewhere_);
  EXPECT_FALSE(exists(here("from")));
  EXPECT_EQ(mode_of(elsewhere_), 0711u);
  EXPECT_EQ(mode_of(elsewhere_ + "/private"), 0700u);
  EXPECT_EQ(mode_of(elsewhere_ + "/private/deep"), deep);
  EXPECT_EQ(mode_of(elsewhere_ + "/private/deep/a"), 0640u);
  EXPECT_EQ(mode_of(elsewhere_ + "/shared"), 0750u);
}

// An earlier attempt may have left a file that all may read.
TEST_F(Permissions, OfAFileHoldWhileItIsCopied) {
  write(here("secret"), std::string(64 << 20, 's'));
  write(here("copy.moxing.part"), "");
  ::chmod(here("secret").c_str(), 0600);
  ::chmod(here("copy.moxing.part").c_str(), 0644);
  std::atomic<bool> ends{false};
  std::atomic<int> open_to_others{0};
  {
    std::jthread looks([&] {
      struct stat status {};
      while (!ends)
        if (::stat(here("copy.moxing.part").c_str(), &status) == 0 && status.st_size > 0 &&
            (status.st_mode & 077) != 0)
          ++open_to_others;
    });
    copy(here("secret"), here("copy"));
    ends = true;
  }
  EXPECT_EQ(open_to_others, 0);
  EXPECT_EQ(mode_of(here("copy")), 0600u);
  ::chmod(here("secret").c_str(), 0400);
  copy(here("secret"), here("read only"));
  EXPECT_EQ(mode_of(here("read only")), 0400u);
}

}  // namespace
}  // namespace mox::file
