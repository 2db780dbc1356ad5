// Copies onto a disk that has room for their files once, and not for those and what an earlier attempt has
// left.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing::HasSubstr;
using testing_store::Fault;
using testing_store::Happening;

// The target of a copy is a tmpfs of 48 MiB, which this thread and those that it starts see alone.
class SmallDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(disk());
    if (::unshare(CLONE_NEWNS) == 0) {
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
      is_mounted_ = ::mount("moxing_test", disk().c_str(), "tmpfs", 0, "size=48m") == 0;
    }
    if (!is_mounted_) GTEST_SKIP() << "needs root (CAP_SYS_ADMIN) to mount a tmpfs: the test did not run";
  }
  void TearDown() override {
    if (is_mounted_) ::umount2(disk().c_str(), MNT_DETACH);
  }
  std::string disk() const { return directory_.file("disk"); }
  std::string here(const std::string& name) const { return directory_.file(name); }

  StoreFixture store_;
  TemporaryDirectory directory_;
  const std::string large_ = random_bytes(30 << 20);

 private:
  bool is_mounted_ = false;
};

TEST_F(SmallDisk, ATreeGoesOnFromItsParts) {
  store_.server.put("bucket", "from/large", large_);
  store_.server.put("bucket", "from/small", "abc");
  auto options = store_.options();
  options.attempts = 2;
  store_.use(options);
  store_.proxy.set_plan([](const std::string& operation, int64_t number) {
    return Happening{operation == "GetObject" && number >= 2 ? Fault::kTruncated : Fault::kNone};
  });
  EXPECT_THROW(copy_parallel("s3://bucket/from", disk() + "/to", {.threads = 1}), IoError);
  EXPECT_TRUE(exists(disk() + "/to/large.moxing.part"));
  store_.proxy.set_plan({});
  EXPECT_GT(copy_parallel("s3://bucket/from", disk() + "/to").continued_bytes, 0);
  EXPECT_TRUE(read(disk() + "/to/large") == large_);
}

TEST_F(SmallDisk, WhatAnEarlierLocalCopyHasLeftMakesRoom) {
  write(here("from/large"), large_);
  const auto leave_a_part = [&](const std::string& name) {
    remove(disk() + "/to", true);
    write(disk() + "/to/" + name + ".moxing.part", random_bytes(29 << 20, 2));
  };
  make_dirs(disk() + "/to");
  leave_a_part("large");
  copy_parallel(here("from"), disk() + "/to");
  EXPECT_TRUE(read(disk() + "/to/large") == large_);
  leave_a_part("other");
  copy(here("from/large"), disk() + "/to/other");
  EXPECT_TRUE(read(disk() + "/to/other") == large_);
}

TEST_F(SmallDisk, ATreeThatDoesNotFitIsRefusedAtOnce) {
  for (const char* name : {"a", "b"}) {
    store_.server.put("bucket", std::string("from/") + name, large_);
    write(here("from/") + name, large_);
  }
  // What is left of another file makes no room.
  write(disk() + "/to/other.moxing.part", random_bytes(20 << 20));
  const int64_t before = store_.server.requests_of("GetObject");
  for (const std::string& from : {std::string("s3://bucket/from"), here("from")})
    EXPECT_THAT(message_of<IoError>([&] { copy_parallel(from, disk() + "/to"); }),
                testing::AllOf(HasSubstr("62914560 bytes are to be written"), HasSubstr("whose disk has")));
  EXPECT_EQ(store_.server.requests_of("GetObject"), before);
}

}  // namespace
}  // namespace mox::file
