// Copies onto a disk that has room for their files once, and not for those and what an earlier
// attempt has left.
#include "tests/support/small_disk.h"

#include <gmock/gmock.h>

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

// The target of a copy is a disk of 48 MiB.
class CopiesToASmallDisk : public testing::Test {
 protected:
  void SetUp() override { SKIP_UNLESS_MOUNTED(disk_); }
  std::string disk() const { return disk_.path(); }
  std::string here(const std::string& name) const { return directory_.file(name); }

  StoreFixture store_;
  TemporaryDirectory directory_;
  const SmallDisk disk_{"size=48m"};
  const std::string large_ = random_bytes(30 << 20);
};

TEST_F(CopiesToASmallDisk, ATreeGoesOnFromItsParts) {
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

TEST_F(CopiesToASmallDisk, WhatAnEarlierLocalCopyHasLeftMakesRoom) {
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

TEST_F(CopiesToASmallDisk, ATreeThatDoesNotFitIsRefusedAtOnce) {
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
