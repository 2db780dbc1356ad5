// Who else may write to what holds the places of this machine: nobody, whatever was there before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "moxing/file/file.h"
#include "moxing/file/jobs/internal/own_directory.h"
#include "moxing/file/jobs/internal/place.h"
#include "moxing/file/jobs/local_places.h"
#include "moxing/file/jobs/staging.h"
#include "runtime/base/error.h"
#include "runtime/base/local_name.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/temporary_directory.h"

namespace mox::file {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_store::Fault;
using testing_store::Happening;

constexpr uid_t kSomebodyElse = 65534;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

class OwnPlaces : public testing::Test {
 protected:
  OwnPlaces() {
    for (const char* name : {"a", "b"}) store_.server.put("bucket", std::string("set/") + name, name);
  }
  std::string refusal() const {
    return message_of<UnusablePlace>([&] { local_data("s3://bucket/set", places_); });
  }

  StoreFixture store_;
  TemporaryDirectory directory_;
  const std::string places_ = directory_.file("places");
};

// As quick as somebody can be who sees that the place is not there yet.
TEST_F(OwnPlaces, ALinkThatComesWhileTheStoreIsAskedIsNotFollowed) {
  const std::string precious = directory_.write("elsewhere/precious", "precious");
  const std::string place = internal::place_of("data", "s3://bucket/set", places_);
  store_.proxy.set_plan([&](const std::string&, int64_t) {
    std::error_code taken;
    fs::create_directory_symlink(directory_.file("elsewhere"), place, taken);
    return Happening{Fault::kNone};
  });
  EXPECT_EQ(local_data("s3://bucket/set", places_), place);
  store_.proxy.set_plan({});
  EXPECT_THAT(list_directory(place), ElementsAre("a", "b"));
  EXPECT_THAT(list_directory(directory_.file("elsewhere")), ElementsAre("precious"));
}

TEST_F(OwnPlaces, AreNotMadeWhereOthersMayRename) {
  fs::create_directory(places_);
  ::chmod(places_.c_str(), 0777);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("'" + places_ + "' may be written to by others"),
                               HasSubstr("chmod go-w '" + places_ + "'"), HasSubstr("file.local_directory")));
  EXPECT_TRUE(fs::is_empty(places_));
  // That of ~/.cache is ours.
  const std::string own = directory_.file("moxing");
  fs::create_directory(own);
  ::chmod(own.c_str(), 0775);
  EXPECT_EQ(read(local_data("s3://bucket/set", own) + "/a"), "a");
  EXPECT_EQ(mode_of(own), 0755u);
  // With the sticky bit nobody may rename what is another's.
  ::chmod(places_.c_str(), 01777);
  EXPECT_EQ(read(local_data("s3://bucket/set", places_) + "/a"), "a");
}

// What is on its way to a store is written there, and all that lies there by then is sent.
TEST_F(OwnPlaces, OutputIsNotMadeWhereOthersMayRename) {
  fs::create_directory(places_);
  ::chmod(places_.c_str(), 0777);
  EXPECT_THAT(message_of<UnusablePlace>([&] { Staging("s3://bucket/predictions.csv", places_); }),
              HasSubstr("'" + places_ + "' may be written to by others"));
  EXPECT_TRUE(fs::is_empty(places_));
  ::chmod(places_.c_str(), 01777);
  EXPECT_EQ(Staging("s3://bucket/predictions.csv", places_).path().find(places_ + "/staging-"), 0u);
}

TEST_F(OwnPlaces, AreThisUsersAloneToWriteTo) {
  const mode_t before = ::umask(0);
  const std::string place = local_data("s3://bucket/set", places_);
  for (const std::string& path : {places_, places_ + "/data", place}) EXPECT_EQ(mode_of(path), 0755u) << path;
  ::umask(077);
  EXPECT_EQ(mode_of(local_run("s3://bucket/run", places_)), 0700u);
  ::umask(before);
  // Those of an earlier version.
  ::chmod((places_ + "/data").c_str(), 0775);
  ::chmod(place.c_str(), 0777);
  local_data("s3://bucket/set", places_);
  EXPECT_EQ(mode_of(places_ + "/data"), 0755u);
  EXPECT_EQ(mode_of(place), 0755u);
}

TEST_F(OwnPlaces, ThoseOfAnotherUserAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give directories to another user";
  const std::string place = internal::place_of("data", "s3://bucket/set", places_);
  fs::create_directories(place);
  for (const std::string& path : {place, places_ + "/data", places_}) {
    ASSERT_EQ(::lchown(path.c_str(), kSomebodyElse, kSomebodyElse), 0);
    EXPECT_THAT(refusal(), HasSubstr("'" + path + "' belongs to another user (uid 65534)"));
  }
  EXPECT_TRUE(fs::is_empty(place));
}

TEST_F(OwnPlaces, LinksBelowThemAreRefused) {
  fs::create_directories(directory_.file("elsewhere"));
  fs::create_directory(places_);
  fs::create_directory_symlink(directory_.file("elsewhere"), places_ + "/data");
  EXPECT_THAT(refusal(), HasSubstr("'" + places_ + "/data' is a link"));
  EXPECT_TRUE(fs::is_empty(directory_.file("elsewhere")));
  // The user's own word may be one.
  fs::create_directory_symlink(directory_.file("elsewhere"), directory_.file("link"));
  EXPECT_EQ(read(local_data("s3://bucket/set", directory_.file("link")) + "/a"), "a");
}

TEST_F(OwnPlaces, WhoWaitsForOneSaysForWhom) {
  const std::string place = places_ + "/data/one";
  testing::internal::CaptureStderr();
  {
    auto held = std::make_unique<internal::PlaceLock>(place, places_);
    std::jthread waits([&] { const internal::PlaceLock lock(place, places_); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    held.reset();
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("waiting for process " + std::to_string(::getpid()) + " on "),
                    HasSubstr("which fills '" + place + "'")));
}

}  // namespace
}  // namespace mox::file
