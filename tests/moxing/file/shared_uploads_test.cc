// Several uploads to one key at a time: the last one that ends counts, and none makes another one fail.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <thread>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/s3/client.h"
#include "moxing/file/s3/digest.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing::HasSubstr;
using testing_store::Fault;
using testing_store::Happening;

class SharedUploads : public testing::Test {
 protected:
  SharedUploads() {
    write(here_, content_);
    s3::StoreOptions options = store_.options();
    options.endpoint = store_.server.endpoint();  // not through the proxy, whose plan asks for it
    other_ = std::make_unique<s3::Client>(options);
  }
  // What another process does to the upload that is under way.
  void overwrite_a_part() {
    const std::string bytes(5 << 20, 'x');
    for (const s3::ListedUpload& upload : other_->uploads_of(key_, {}))
      other_->upload_part(key_, upload.id, 1, bytes, s3::md5(bytes));
  }
  void end_the_upload() {
    for (const s3::ListedUpload& upload : other_->uploads_of(key_, {})) other_->abort(key_, upload.id);
  }
  // Calls `happens` before the operation's `first` to `last`.
  void before(const std::string& operation, int64_t first, int64_t last,
              const std::function<void()>& happens) {
    store_.proxy.set_plan([=](const std::string& now, int64_t number) -> Happening {
      if (now == operation && number >= first && number <= last) happens();
      return {};
    });
  }
  void expect_arrived() {
    store_.proxy.set_plan({});
    EXPECT_TRUE(read(url_) == content_);
    EXPECT_EQ(store_.server.uploads_under_way(), 0);
  }

  StoreFixture store_;
  TemporaryDirectory directory_;
  const std::string content_ = random_bytes((20 << 20) + 3), here_ = directory_.file("a"),
                    url_ = "s3://bucket/a";
  const s3::ObjectName key_{.bucket = "bucket", .key = "a"};
  std::unique_ptr<s3::Client> other_;
};

TEST_F(SharedUploads, WhosePartsAreOverwrittenBeginAnew) {
  before("CompleteMultipartUpload", 0, 0, [this] { overwrite_a_part(); });
  copy(here_, url_);
  expect_arrived();
}

TEST_F(SharedUploads, ThatAreEndedBeginAnew) {
  before("UploadPart", 2, 2, [this] { end_the_upload(); });
  copy(here_, url_, {.threads = 1});
  expect_arrived();
}

TEST_F(SharedUploads, OfMemoryBeginAnew) {
  before("CompleteMultipartUpload", 0, 0, [this] { overwrite_a_part(); });
  write(url_, content_);
  expect_arrived();
  remove(url_);
  before("CompleteMultipartUpload", 0, 0, [this] { end_the_upload(); });
  write(url_, content_);
  expect_arrived();
}

// What goes wrong for ever is said, and leaves nothing of this process's.
TEST_F(SharedUploads, ThatAreAlwaysTakenEnd) {
  before("CompleteMultipartUpload", 0, 1000, [this] { overwrite_a_part(); });
  EXPECT_THAT(message_of<IoError>([&] { copy(here_, url_); }), HasSubstr("InvalidPart"));
  EXPECT_EQ(store_.server.requests_of("CompleteMultipartUpload"), 4);
  EXPECT_THAT(message_of<IoError>([&] { write(url_, content_); }), HasSubstr("InvalidPart"));
  EXPECT_LE(store_.server.uploads_under_way(), 1);  // from which the same copy goes on
}

TEST_F(SharedUploads, OfAnotherProcessAreNotEndedByACancelledOne) {
  const std::string id = other_->create_upload(key_, 8 << 20);
  std::stop_source stop;
  before("UploadPart", 1, 1, [&] { stop.request_stop(); });
  EXPECT_THAT(message_of<IoError>([&] { copy(here_, url_, {.threads = 1, .stop = stop.get_token()}); }),
              testing::AllOf(HasSubstr("cancelled"), HasSubstr("begun before stays in the store")));
  ASSERT_EQ(store_.server.uploads_under_way(), 1);
  EXPECT_EQ(other_->uploads_of(key_).front().id, id);
  store_.proxy.set_plan({});
  EXPECT_GT(copy(here_, url_).continued_bytes, 0);
  expect_arrived();
}

// A begin that was asked for twice may have left an upload that nobody knows, which is looked for.
TEST_F(SharedUploads, AreBegunTwiceWhereTheyAreNotListed) {
  store_.server.set_refuses_upload_listings(true);
  store_.proxy.set_plan([](const std::string& operation, int64_t number) -> Happening {
    const bool is_first = operation == "CreateMultipartUpload" && number == 0;
    return {is_first ? Fault::kStatus503 : Fault::kNone};
  });
  copy(here_, url_);
  expect_arrived();
}

TEST_F(SharedUploads, AreGoneOnWithWhereThoseBegunTwiceCannotBeEnded) {
  store_.proxy.set_plan([this](const std::string& operation, int64_t number) -> Happening {
    const bool is_first = operation == "CreateMultipartUpload" && number == 0;
    if (is_first) other_->create_upload(key_, 8 << 20);
    return {is_first || operation == "AbortMultipartUpload" ? Fault::kStatus500 : Fault::kNone};
  });
  copy(here_, url_);
  store_.proxy.set_plan({});
  EXPECT_TRUE(read(url_) == content_);
  EXPECT_EQ(store_.server.uploads_under_way(), 1);
}

TEST_F(SharedUploads, AtOnceAllEndWell) {
  const std::string second = random_bytes((20 << 20) + 3, 2);
  write(directory_.file("b"), second);
  for (int round = 0; round < 4; ++round) {
    {
      std::vector<std::jthread> users;
      for (const std::string& from : {here_, directory_.file("b")})
        users.emplace_back([&, from] {
          try {
            copy(from, url_, {.skip_same = false});
          } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
          }
        });
    }
    const std::string arrived = read(url_);
    EXPECT_TRUE(arrived == content_ || arrived == second);
    EXPECT_EQ(store_.server.uploads_under_way(), 0);
  }
}

}  // namespace
}  // namespace mox::file
