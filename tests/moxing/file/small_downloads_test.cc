// Small new files of a tree, which travel without a thread of their own (internal/small).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/internal/small/nameless_file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using internal::write_nameless;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_store::Fault;
using testing_store::Happening;

constexpr int kFiles = 100;

class SmallDownloadsTest : public testing::Test {
 protected:
  SmallDownloadsTest() {
    // With lengths on both sides of what travels so.
    for (int i = 0; i < kFiles; ++i)
      store_.server.put("bucket", name(i),
                        contents_.emplace_back(random_bytes(i % 7 == 0 ? 0 : i * 3000, i)));
  }
  static std::string name(int i) { return fmt::format("from/{}/{}", i % 5, i); }
  std::string target(int i) const { return directory_.file("to") + fmt::format("/{}/{}", i % 5, i); }
  CopyReport copy_all(const CopyOptions& options = {}) const {
    return copy_parallel("s3://bucket/from", directory_.file("to"), options);
  }
  void expect_all() const {
    for (int i = 0; i < kFiles; ++i) EXPECT_TRUE(read(target(i)) == contents_[i]) << i;
    EXPECT_EQ(list_directory(directory_.file("to"), {.recursive = true}).size(), kFiles + 5);
  }

  StoreFixture store_;
  TemporaryDirectory directory_;
  std::vector<std::string> contents_;
};

TEST_F(SmallDownloadsTest, ArriveWithOneRequestEach) {
  for (const int threads : {1, 2, 16}) {
    std::filesystem::remove_all(directory_.file("to"));
    const int64_t before = store_.server.requests_of("GetObject");
    const CopyReport report = copy_all({.threads = threads});
    EXPECT_EQ(report.files, kFiles);
    EXPECT_EQ(report.sent_bytes, report.bytes);
    EXPECT_EQ(report.unchecked, 0);
    EXPECT_EQ(store_.server.requests_of("GetObject") - before, kFiles);
    expect_all();
  }
  EXPECT_EQ(copy_all().same_files, kFiles);
}

TEST_F(SmallDownloadsTest, OfWhichSomeAreDamagedAreAskedForAgain) {
  for (const Fault fault : {Fault::kDamagedBody, Fault::kWrongEtag, Fault::kTruncated, Fault::kStatus503,
                            Fault::kResetInAnswer, Fault::kTwice}) {
    std::filesystem::remove_all(directory_.file("to"));
    // Two: content that is wrong three times is an error.
    store_.proxy.set_plan([fault, requests = 0](const std::string& operation, int64_t) mutable -> Happening {
      if (operation != "GetObject") return {};
      ++requests;
      return {requests == 3 || requests == 40 ? fault : Fault::kNone};
    });
    const int64_t before = store_.proxy.faults_made();
    EXPECT_EQ(copy_all().files, kFiles);
    EXPECT_EQ(store_.proxy.faults_made() - before, 2);
    expect_all();
  }
}

// The attempt that nobody waited for is the first.
TEST_F(SmallDownloadsTest, HaveAsManyAttemptsAsOthers) {
  auto options = store_.options();
  options.attempts = 3;
  store_.use(options);
  store_.server.put("bucket", "one/a", "abc");
  store_.proxy.set_plan([](const std::string& operation, int64_t) -> Happening {
    return {operation == "GetObject" ? Fault::kStatus503 : Fault::kNone};
  });
  const int64_t before = store_.proxy.faults_made();
  EXPECT_THAT(message_of<IoError>([&] { copy_parallel("s3://bucket/one", directory_.file("one")); }),
              AllOf(HasSubstr("0 of 1 files"), HasSubstr("attempt 3 of 3")));
  EXPECT_EQ(store_.proxy.faults_made() - before, 3);
  EXPECT_THAT(list_directory(directory_.file("one")), ElementsAre());
}

TEST_F(SmallDownloadsTest, AreCancelled) {
  store_.proxy.set_plan([](const std::string& operation, int64_t number) -> Happening {
    return {operation == "GetObject" && number > 10 ? Fault::kStandstill : Fault::kNone};
  });
  std::stop_source stop;
  const auto begin = std::chrono::steady_clock::now();
  const std::jthread user([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    stop.request_stop();
  });
  EXPECT_THAT(message_of<IoError>([&] { copy_all({.stop = stop.get_token()}); }), HasSubstr("cancelled"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  for (int i = 0; i < kFiles; ++i) EXPECT_TRUE(!exists(target(i)) || read(target(i)) == contents_[i]) << i;
  store_.proxy.set_plan({});
  copy_all();
  expect_all();
}

// What an earlier copy of another way has left does not stay.
TEST_F(SmallDownloadsTest, TakeThePartsOfEarlierOnesAway) {
  make_dirs(directory_.file("to/1"));
  write(target(1) + ".moxing.part", "half");
  copy_all();
  expect_all();
}

TEST_F(SmallDownloadsTest, DoNotComeIntoThePlaceOfADirectory) {
  make_dirs(target(1));
  EXPECT_THAT(message_of<IoError>([&] { copy_all(); }),
              AllOf(HasSubstr("99 of 100 files"), HasSubstr("is a directory")));
}

TEST(NamelessFileTest, GetsANameThatIsFreeAndNoOther) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a"), link = directory.file("link");
  if (!write_nameless(path, "content")) {  // a file system that has none
    EXPECT_FALSE(exists(path));
    write(path, "content");
  }
  EXPECT_EQ(read(path), "content");
  struct stat made {};
  ASSERT_EQ(::stat(path.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777 & ~0644, 0u);
  EXPECT_FALSE(write_nameless(path, "other"));
  EXPECT_EQ(read(path), "content");
  std::filesystem::create_symlink(directory.file("nowhere"), link);
  EXPECT_FALSE(write_nameless(link, "other"));
  EXPECT_FALSE(exists(directory.file("nowhere")));
  EXPECT_FALSE(write_nameless(directory.file("missing/a"), "other"));
  EXPECT_EQ(list_directory(directory.file("")).size(), 2u);
}

}  // namespace
}  // namespace mox::file
