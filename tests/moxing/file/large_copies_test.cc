// Copies within a store of what is too large for one request: they go on from the parts of an earlier
// attempt, and begin anew where another process takes their upload.
#include <gmock/gmock.h>

#include <functional>
#include <memory>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/s3/client.h"
#include "moxing/file/s3/digest.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_store::Fault;
using testing_store::Happening;

constexpr const char* kFrom = "s3://bucket/from";
constexpr const char* kTo = "s3://bucket/to";

class LargeCopies : public testing::Test {
 protected:
  LargeCopies() {
    store_.server.put("bucket", "from", content_);
    s3::StoreOptions options = store_.options();
    options.largest_copy = 10 << 20;  // parts of 8 to 9 MiB
    options.attempts = 1;
    store_.use(options);
    options.endpoint = store_.server.endpoint();  // not through the proxy, whose plan asks for it
    other_ = std::make_unique<s3::Client>(options);
  }
  void before(const std::string& operation, int64_t first, int64_t last,
              const std::function<void()>& happens) {
    store_.proxy.set_plan([=](const std::string& now, int64_t number) -> Happening {
      if (now == operation && number >= first && number <= last) happens();
      return {};
    });
  }
  // As one whose process was killed after two parts.
  void leave_two_parts(const std::string& from = kFrom) {
    int64_t parts = 0;
    store_.proxy.set_plan([&](const std::string& operation, int64_t) -> Happening {
      return {operation == "UploadPartCopy" && ++parts > 2 ? Fault::kStatus500 : Fault::kNone};
    });
    EXPECT_THROW(copy(from, kTo, {.threads = 1}), IoError);
    store_.proxy.set_plan({});
    EXPECT_EQ(store_.server.uploads_under_way(), 1);
  }
  void end_the_uploads() {
    for (const s3::ListedUpload& upload : other_->uploads_of(key_)) other_->abort(key_, upload.id);
  }
  void overwrite_a_part() {
    const std::string bytes(5 << 20, 'x');
    for (const s3::ListedUpload& upload : other_->uploads_of(key_))
      other_->upload_part(key_, upload.id, 1, bytes, s3::md5(bytes));
  }
  bool has_arrived(const std::string& content) {
    store_.proxy.set_plan({});
    const auto arrived = store_.server.content("bucket", "to");
    return arrived && *arrived == content;
  }

  StoreFixture store_;
  const std::string content_ = random_bytes((30 << 20) + 3), second_ = random_bytes((30 << 20) + 3, 2);
  const s3::ObjectName key_{.bucket = "bucket", .key = "to"};
  std::unique_ptr<s3::Client> other_;
};

TEST_F(LargeCopies, GoOnFromTheirParts) {
  leave_two_parts();
  const int64_t before = store_.server.requests_of("UploadPartCopy");
  EXPECT_GT(copy(kFrom, kTo).continued_bytes, 16 << 20);
  EXPECT_EQ(store_.server.requests_of("UploadPartCopy") - before, 2);
  EXPECT_TRUE(has_arrived(content_));
  EXPECT_EQ(store_.server.uploads_under_way(), 0);
}

// A store does not say where the parts of an upload are from.
TEST_F(LargeCopies, DoNotGoOnFromPartsOfAnotherSource) {
  leave_two_parts();
  store_.server.put("bucket", "from", second_);
  EXPECT_EQ(copy(kFrom, kTo).continued_bytes, 0);
  EXPECT_TRUE(has_arrived(second_));
  EXPECT_EQ(store_.server.uploads_under_way(), 1) << "it may be another process's";
  store_.server.put("bucket", "other", content_);
  EXPECT_EQ(copy("s3://bucket/other", kTo).continued_bytes, 0);
  EXPECT_TRUE(has_arrived(content_));
  // Nor from those of a file of a machine.
  const std::string id = other_->create_upload(key_, 8 << 20), bytes = second_.substr(0, 8 << 20);
  other_->upload_part(key_, id, 1, bytes, s3::md5(bytes));
  EXPECT_EQ(copy("s3://bucket/other", kTo, {.skip_same = false}).continued_bytes, 0);
  EXPECT_TRUE(has_arrived(content_));
}

TEST_F(LargeCopies, BeginAnewWhereTheirUploadIsTaken) {
  before("UploadPartCopy", 2, 2, [this] { end_the_uploads(); });
  copy(kFrom, kTo, {.threads = 1});
  EXPECT_TRUE(has_arrived(content_));
  other_->remove(key_);
  before("CompleteMultipartUpload", 1, 1, [this] { overwrite_a_part(); });
  copy(kFrom, kTo);
  EXPECT_TRUE(has_arrived(content_));
  EXPECT_EQ(store_.server.uploads_under_way(), 0);
}

TEST_F(LargeCopies, WhoseUploadIsAlwaysTakenEnd) {
  before("CompleteMultipartUpload", 0, 1000, [this] { overwrite_a_part(); });
  EXPECT_THAT(message_of<IoError>([] { copy(kFrom, kTo); }), HasSubstr("InvalidPart"));
  EXPECT_EQ(store_.server.requests_of("CompleteMultipartUpload"), 4);
  EXPECT_LE(store_.server.uploads_under_way(), 1);  // from which the same copy goes on
}

TEST_F(LargeCopies, ThatAreCancelledEndTheirUploadsAlone) {
  const std::string id = other_->create_upload(key_, 8 << 20);
  std::stop_source stop;
  before("UploadPartCopy", 1, 1, [&] { stop.request_stop(); });
  EXPECT_THAT(message_of<IoError>([&] { copy(kFrom, kTo, {.threads = 1, .stop = stop.get_token()}); }),
              HasSubstr("cancelled"));
  ASSERT_EQ(store_.server.uploads_under_way(), 1);
  EXPECT_EQ(other_->uploads_of(key_).front().id, id);
}

// Nothing could go on from the parts of what is no more.
TEST_F(LargeCopies, OfASourceThatChangesLeaveNothing) {
  before("UploadPartCopy", 1, 1, [this] { store_.server.put("bucket", "from", second_); });
  EXPECT_THAT(message_of<IoError>([] { copy(kFrom, kTo, {.threads = 1}); }),
              AllOf(HasSubstr(kFrom), HasSubstr("has changed while it was copied")));
  before("UploadPartCopy", 1, 1, [this] { other_->remove({.bucket = "bucket", .key = "from"}); });
  EXPECT_THAT(message_of<IoError>([] { copy(kFrom, kTo, {.threads = 1}); }), HasSubstr(kFrom));
  EXPECT_EQ(store_.server.uploads_under_way(), 0);
  EXPECT_FALSE(has_arrived(second_));
}

// Of a store that knows the source by a name that no condition meets.
TEST_F(LargeCopies, OfASourceThatNoConditionMeets) {
  store_.server.set_meets_copy_conditions(false);
  copy(kFrom, kTo);
  EXPECT_TRUE(has_arrived(content_));
  EXPECT_EQ(store_.server.uploads_under_way(), 0);
  before("UploadPartCopy", 3, 3, [this] { store_.server.put("bucket", "from", second_); });
  EXPECT_THAT(message_of<IoError>([] { copy(kFrom, kTo, {.threads = 1, .skip_same = false}); }),
              HasSubstr("has changed while it was copied"));
  EXPECT_TRUE(has_arrived(content_));
  EXPECT_EQ(store_.server.uploads_under_way(), 0);
}

TEST_F(LargeCopies, OfASourceWithAWeakEtag) {
  store_.server.set_weak_etags(true);
  copy(kFrom, kTo);
  EXPECT_TRUE(has_arrived(content_));
}

}  // namespace
}  // namespace mox::file
