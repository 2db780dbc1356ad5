// Objects that are other ones than when they were looked at: the error says what has changed.
#include <gmock/gmock.h>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/open_file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr size_t kBeyondOneRequest = (16 << 20) + 1;

class ChangedObjects : public testing::Test {
 protected:
  // What the reading of an object that has 100 bytes says, if it has `now` then.
  std::string change_to(const std::string& now) {
    write("s3://bucket/a", std::string(100, 'a'));
    before_ = stat("s3://bucket/a").etag;
    File file("s3://bucket/a", "rb");
    store_.server.put("bucket", "a", now);
    return message_of<IoError>([&] { file.read(); });
  }

  StoreFixture store_;
  TemporaryDirectory directory_;
  std::string before_;
};

TEST_F(ChangedObjects, AreNamedWithBothEtags) {
  for (const std::string& now : {std::string(100, 'b'), std::string("short"), std::string(1000, 'b'),
                                 std::string(kBeyondOneRequest, 'b')}) {
    const std::string text = change_to(now);
    EXPECT_THAT(text, AllOf(HasSubstr("'s3://bucket/a' has changed"), HasSubstr(before_),
                            HasSubstr(stat("s3://bucket/a").etag), HasSubstr("begin again")));
  }
}

TEST_F(ChangedObjects, OfOneEtagAreNamedWithBothSizes) {
  store_.server.set_same_etags(true);
  for (const size_t size : {size_t{5}, size_t{1000}, kBeyondOneRequest})
    EXPECT_THAT(change_to(std::string(size, 'b')),
                AllOf(HasSubstr("'s3://bucket/a' has changed"),
                      HasSubstr("it had 100 bytes and has " + std::to_string(size) + " now"),
                      Not(HasSubstr("ETag was"))));
}

// Listed, and longer than one request brings when its turn comes.
TEST_F(ChangedObjects, ThatHaveGrownAreNotCopied) {
  write("s3://bucket/d/a", "abc");
  bool grown = false;
  store_.proxy.set_plan([&](const std::string& operation, int64_t) -> testing_store::Happening {
    if (operation == "GetObject" && !std::exchange(grown, true))
      store_.server.put("bucket", "d/a", std::string(kBeyondOneRequest, 'b'));
    return {};
  });
  EXPECT_THAT(message_of<IoError>([&] { copy_parallel("s3://bucket/d", directory_.file("to")); }),
              AllOf(HasSubstr("has changed"), HasSubstr("3 bytes")));
  EXPECT_TRUE(grown);
}

// Of a file that one request was too small for when it was looked at, nothing is left when its turn comes.
TEST_F(ChangedObjects, ThatHaveBecomeEmptyAreCopiedSo) {
  store_.server.put("bucket", "a", std::string(kBeyondOneRequest, 'a'));
  store_.proxy.set_plan([&](const std::string& operation, int64_t number) -> testing_store::Happening {
    if (operation == "HeadObject" && number == 1) store_.server.put("bucket", "a", "");
    return {};
  });
  EXPECT_EQ(copy("s3://bucket/a", directory_.file("a")).files, 1);
  EXPECT_EQ(stat(directory_.file("a")).length, 0);
  EXPECT_FALSE(exists(directory_.file("a.moxing.part")));
}

// An earlier attempt has left a journal.
TEST_F(ChangedObjects, ThatHaveBecomeShorterLeaveNothingElse) {
  store_.server.put("bucket", "a", std::string(kBeyondOneRequest, 'a'));
  auto options = store_.options();
  options.attempts = 1;
  store_.use(options);
  store_.proxy.set_plan([](const std::string& operation, int64_t number) -> testing_store::Happening {
    using testing_store::Fault;
    return {operation == "GetObject" && number >= 1 ? Fault::kStatus500 : Fault::kNone};
  });
  EXPECT_THROW(copy("s3://bucket/a", directory_.file("a"), {.threads = 1}), IoError);
  EXPECT_GT(list_directory(directory_.path()).size(), 1u);
  store_.proxy.set_plan({});
  store_.server.put("bucket", "a", "abc");
  copy("s3://bucket/a", directory_.file("a"));
  EXPECT_THAT(list_directory(directory_.path()), testing::ElementsAre("a"));
}

class ChangedFiles : public ChangedObjects {
 protected:
  // Copies a file that has `now` once the store has been asked for its destination.
  void copy_changed(const std::string& before, const std::string& now) {
    const std::string path = directory_.file("a");
    write(path, before);
    store_.proxy.set_plan([&](const std::string& operation, int64_t number) -> testing_store::Happening {
      if (operation == "HeadObject" && number == 0) write(path, now);
      return {};
    });
    EXPECT_EQ(copy(path, "s3://bucket/a").files, 1);
    const auto arrived = store_.server.content("bucket", "a");
    EXPECT_TRUE(arrived && *arrived == now);
    EXPECT_EQ(store_.server.uploads_under_way(), 0);
  }
};

TEST_F(ChangedFiles, ThatHaveBecomeEmptyAreCopiedSo) {
  copy_changed(std::string(kBeyondOneRequest, 'a'), "");
  EXPECT_EQ(store_.server.requests_of("CreateMultipartUpload"), 0);
}

TEST_F(ChangedFiles, ThatHaveGrownGoInParts) {
  copy_changed("abc", std::string(kBeyondOneRequest, 'b'));
  EXPECT_EQ(store_.server.requests_of("CompleteMultipartUpload"), 1);
}

// The refusal of a condition is longer than a few bytes at the end that were asked for.
TEST_F(ChangedObjects, AreNoticedInShortReads) {
  const size_t size = (16 << 20) + 3;
  write("s3://bucket/a", std::string(size, 'a'));
  File file("s3://bucket/a", "rb");
  file.seek(16 << 20);
  write("s3://bucket/a", std::string(size, 'b'));
  EXPECT_THAT(message_of<IoError>([&] { file.read(); }), HasSubstr("'s3://bucket/a' has changed"));
}

}  // namespace
}  // namespace mox::file
