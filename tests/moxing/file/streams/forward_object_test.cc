// Objects that are read once, in order: what comes is what is there, whatever happens on the way, and little
// of it is in memory at a time.
#include "moxing/file/streams/forward_object.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "moxing/file/store_client.h"
#include "moxing/file/streams/streamed_file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/put_in_parts.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_store::Fault;

constexpr int64_t kOneMebibyte = 1 << 20;

class ForwardObjectTest : public testing::Test {
 protected:
  ForwardObjectTest() {
    set_stream_memory(1);  // what another test has read leaves
    set_stream_memory(64 * kOneMebibyte);
    store_.server.put("bucket", "large", large_);
  }
  // All that is left, so many bytes at a time.
  static std::string rest_of(ForwardObject& object, int64_t at_a_time) {
    std::string all;
    while (object.left() > 0) {
      std::string bytes(static_cast<size_t>(std::min(at_a_time, object.left())), '\0');
      object.read(std::as_writable_bytes(std::span(bytes)));
      all += bytes;
    }
    return all;
  }
  // The first answer of this operation is faulty in this way, and no other.
  void make_first_faulty(Fault fault) {
    store_.proxy.set_plan([fault](const std::string& operation, int64_t number) -> testing_store::Happening {
      return {operation == "GetObject" && number == 0 ? fault : Fault::kNone, 0.5};
    });
  }

  const std::string large_ = random_bytes((9 << 20) + 11);
  StoreFixture store_;
};

TEST_F(ForwardObjectTest, ComesThroughFaultsInPiecesOfAnySize) {
  store_.proxy.set_plan([](const std::string&, int64_t number) -> testing_store::Happening {
    if (number % 3 == 1) return {Fault::kResetInAnswer, 0.9};
    if (number % 7 == 3) return {Fault::kStatus503};
    if (number % 11 == 5) return {Fault::kTruncated, 0.5};
    return {};
  });
  for (const int64_t at_a_time : {int64_t{50'021}, kOneMebibyte, 3 * kOneMebibyte + 1, 16 * kOneMebibyte})
    for (const int64_t ahead : {int64_t{0}, int64_t{1}, 2 * kOneMebibyte, 64 * kOneMebibyte}) {
      ForwardObject object("s3://bucket/large", ahead);
      EXPECT_TRUE(rest_of(object, at_a_time) == large_) << at_a_time << " at a time, " << ahead << " ahead";
    }
  EXPECT_GT(store_.proxy.faults_made(), 20);
}

TEST_F(ForwardObjectTest, LittleOfItIsInMemoryAtATime) {
  take_stream_memory_peak();
  for (const int64_t at_a_time : {int64_t{100'003}, 2 * kOneMebibyte}) {
    ForwardObject object("s3://bucket/large", 3 * kOneMebibyte);
    EXPECT_TRUE(rest_of(object, at_a_time) == large_);
    EXPECT_LE(take_stream_memory_peak(), 3 * kOneMebibyte + (256 << 10));
    EXPECT_EQ(take_stream_memory_peak(), 0);  // which is what is there now
  }
}

TEST_F(ForwardObjectTest, IsReadWithoutRoomInMemory) {
  for (const int64_t memory : {int64_t{1}, kOneMebibyte, 3 * kOneMebibyte}) {
    set_stream_memory(memory);
    take_stream_memory_peak();
    ForwardObject object("s3://bucket/large", 32 * kOneMebibyte);
    EXPECT_TRUE(rest_of(object, 500'000) == large_);
    EXPECT_LE(take_stream_memory_peak(), memory + (256 << 10));
  }
}

// 10 MiB by requests of one, none twice; four of them are there before anybody reads what they bring.
TEST_F(ForwardObjectTest, WhatFollowsIsOnItsWayWhileItsReaderWorks) {
  ForwardObject object("s3://bucket/large", 4 * kOneMebibyte);
  std::string begin(1000, '\0');
  object.read(std::as_writable_bytes(std::span(begin)));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (store_.server.requests_of("GetObject") < 4 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(store_.server.requests_of("GetObject"), 4);
  EXPECT_TRUE(begin + rest_of(object, 100'000) == large_);
  EXPECT_LE(store_.server.requests_of("GetObject"), 11);
}

TEST_F(ForwardObjectTest, ASmallOneComesInOneRequest) {
  make_first_faulty(Fault::kDamagedBody);  // and is asked for again
  ForwardObject object("s3://bucket/large", 32 * kOneMebibyte);
  EXPECT_TRUE(rest_of(object, 500'000) == large_);
  EXPECT_EQ(store_.server.requests_of("GetObject"), 2);
  store_.server.put("bucket", "none", "");
  EXPECT_EQ(ForwardObject("s3://bucket/none", 1000).left(), 0);
}

TEST_F(ForwardObjectTest, ABeginIsReadByOneRange) {
  ForwardObject object("s3://bucket/large", 0);
  std::string begin(1000, '\0');
  object.read(std::as_writable_bytes(std::span(begin)));
  EXPECT_EQ(begin, large_.substr(0, 1000));
  EXPECT_EQ(store_.server.requests_of("GetObject"), 1);
  EXPECT_LT(store_.proxy.bytes_to_clients(), 200'000);
}

TEST_F(ForwardObjectTest, WhatIsDamagedOnTheWayIsFoundAtTheEnd) {
  make_first_faulty(Fault::kDamagedBody);
  ForwardObject object("s3://bucket/large", 2 * kOneMebibyte);
  EXPECT_THAT(message_of<DataError>([&] { rest_of(object, 500'000); }),
              AllOf(HasSubstr("'s3://bucket/large' has arrived with another content than its ETag"),
                    HasSubstr(stat("s3://bucket/large").etag)));
}

TEST_F(ForwardObjectTest, WhatChangesMeanwhileIsAnErrorWithBothEtags) {
  for (const int64_t ahead : {int64_t{0}, 2 * kOneMebibyte}) {
    store_.server.put("bucket", "large", large_);
    const std::string before = stat("s3://bucket/large").etag;
    ForwardObject object("s3://bucket/large", ahead);
    std::string begin(1000, '\0');
    object.read(std::as_writable_bytes(std::span(begin)));
    store_.server.put("bucket", "large", random_bytes(large_.size(), 9));
    EXPECT_THAT(message_of<IoError>([&] { rest_of(object, 500'000); }),
                AllOf(HasSubstr("'s3://bucket/large' has changed"), HasSubstr(before),
                      HasSubstr(stat("s3://bucket/large").etag)));
  }
}

// Whose ETag says nothing of content that is gone by then; a checksum does.
TEST_F(ForwardObjectTest, OfPartsThatDifferInSizeIsGood) {
  const s3::ObjectName name{.bucket = "bucket", .key = "large"};
  const std::string content = put_in_parts(*store_client(), name, {6 << 20, 7 << 20, 5 << 20});
  for (const char* checksum : {"", "x-amz-checksum-sha256"}) {
    if (*checksum) store_.server.set_checksums({{checksum, "computed"}});
    ForwardObject object("s3://bucket/large", 2 * kOneMebibyte);
    EXPECT_TRUE(rest_of(object, 500'000) == content);
  }
  make_first_faulty(Fault::kDamagedBody);
  ForwardObject object("s3://bucket/large", 2 * kOneMebibyte);
  EXPECT_THAT(message_of<DataError>([&] { rest_of(object, 500'000); }), HasSubstr("than its SHA-256"));
}

TEST_F(ForwardObjectTest, OfPartsOfOneSizeIsComparedWithItsEtag) {
  const s3::ObjectName name{.bucket = "bucket", .key = "large"};
  put_in_parts(*store_client(), name, {6 << 20, 6 << 20, 5 << 20});
  make_first_faulty(Fault::kDamagedBody);
  ForwardObject object("s3://bucket/large", 2 * kOneMebibyte);
  EXPECT_THAT(message_of<DataError>([&] { rest_of(object, 500'000); }), HasSubstr("than its ETag"));
}

TEST_F(ForwardObjectTest, WhatIsNoObjectIsNamed) {
  store_.server.put("bucket", "set/a.csv", "1");
  EXPECT_THAT(message_of<FailedPrecondition>([] { ForwardObject("s3://bucket/set", 1000); }),
              HasSubstr("cannot read 's3://bucket/set': it names a directory"));
  EXPECT_THAT(message_of<FailedPrecondition>([] { ForwardObject("s3://bucket", 1000); }),
              HasSubstr("it names a directory"));
  EXPECT_THAT(message_of<NotFound>([] { ForwardObject("s3://bucket/absent", 1000); }),
              HasSubstr("no object 's3://bucket/absent'"));
  EXPECT_THAT(message_of<NotFound>([] { ForwardObject("s3://elsewhere/absent", 1000); }),
              HasSubstr("s3://elsewhere"));
}

}  // namespace
}  // namespace mox::file
