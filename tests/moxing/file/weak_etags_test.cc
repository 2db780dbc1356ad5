// A store whose ETags are weak (W/"..."): a condition never matches one, and none is an MD5.
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

class WeakEtags : public testing::Test {
 protected:
  WeakEtags() { store_.server.set_weak_etags(true); }

  StoreFixture store_;
  TemporaryDirectory directory_;
  const std::string large_ = random_bytes((20 << 20) + 17);
};

TEST_F(WeakEtags, OfFilesThatAreOpenedAndRead) {
  for (const std::string& content : {std::string("small"), large_}) {
    write("s3://bucket/a", content);
    EXPECT_TRUE(stat("s3://bucket/a").etag.starts_with("W/\""));
    std::string all;
    File file("s3://bucket/a", "rb");
    for (std::string piece; !(piece = file.read(1 << 20)).empty();) all += piece;
    EXPECT_TRUE(all == content);
    EXPECT_TRUE(read("s3://bucket/a") == content);
    File("s3://bucket/a", "ab").write("!");
    EXPECT_TRUE(read("s3://bucket/a") == content + "!");
  }
}

TEST_F(WeakEtags, OfCopies) {
  write(directory_.file("from/large"), large_);
  write(directory_.file("from/small"), "abc");
  copy_parallel(directory_.file("from"), "s3://bucket/up");
  copy_parallel("s3://bucket/up", "s3://bucket/again");
  rename("s3://bucket/again", "s3://bucket/moved");
  // What was not checked is counted.
  EXPECT_EQ(copy_parallel("s3://bucket/moved", directory_.file("to")).unchecked, 2);
  EXPECT_TRUE(read(directory_.file("to/large")) == large_);
  EXPECT_EQ(read(directory_.file("to/small")), "abc");
}

// They may be those of other bytes: nothing is held to be the same for them.
TEST_F(WeakEtags, AreNoSameContent) {
  write("s3://bucket/from/a", "abc");
  copy_parallel("s3://bucket/from", "s3://bucket/to");
  EXPECT_EQ(copy_parallel("s3://bucket/from", "s3://bucket/to").same_files, 0);
}

TEST_F(WeakEtags, TellOfAChange) {
  write("s3://bucket/a", large_);
  File file("s3://bucket/a", "rb");
  file.read(10);
  const std::string before = stat("s3://bucket/a").etag;
  write("s3://bucket/a", random_bytes(large_.size(), 2));
  EXPECT_THAT(message_of<IoError>([&] {
                file.seek(19 << 20);
                file.read(10);
              }),
              AllOf(HasSubstr("'s3://bucket/a' has changed"), HasSubstr(before),
                    HasSubstr(stat("s3://bucket/a").etag)));
}

// Then nothing else than another request says what was sent.
TEST_F(WeakEtags, TellOfAChangeWhereAnswersHaveNone) {
  store_.server.set_sends_etags(false);
  write("s3://bucket/a", large_);
  File file("s3://bucket/a", "rb");
  EXPECT_EQ(file.read(10), large_.substr(0, 10));
  write("s3://bucket/a", random_bytes(large_.size(), 2));
  EXPECT_THAT(message_of<IoError>([&] {
                file.seek(19 << 20);
                file.read(10);
              }),
              HasSubstr("'s3://bucket/a' has changed"));
}

}  // namespace
}  // namespace mox::file
