#include "moxing/file/streams/streamed_file.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing_store::Fault;

constexpr int64_t kMebibyte = 1 << 20;

class StreamedFileTest : public testing::Test {
 protected:
  StreamedFileTest() {
    set_stream_memory(1);  // what another test has read leaves
    set_stream_memory(64 * kMebibyte);
    store_.server.put("bucket", "large", large_);
  }
  // Every third answer is cut, and some requests are refused.
  void make_faulty() {
    store_.proxy.set_plan([](const std::string&, int64_t number) -> testing_store::Happening {
      if (number % 3 == 1) return {Fault::kResetInAnswer, 0.9};
      if (number % 7 == 3) return {Fault::kStatus503};
      if (number % 11 == 5) return {Fault::kTruncated, 0.5};
      return {};
    });
  }
  std::string bytes_at(const StreamedFile& file, int64_t offset, int64_t length) const {
    std::string bytes(static_cast<size_t>(length), '\0');
    file.read(offset, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }
  std::string expected_at(int64_t offset, int64_t length) const {
    return large_.substr(static_cast<size_t>(offset), static_cast<size_t>(length));
  }

  const std::string large_ = random_bytes((5 << 20) + 11);
  StoreFixture store_;
};

TEST_F(StreamedFileTest, ThreadsReadWhatIsThereThroughFaults) {
  make_faulty();
  const auto file = StreamedFile::open("s3://bucket/large");
  ASSERT_EQ(file->size(), static_cast<int64_t>(large_.size()));
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (unsigned thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      std::mt19937 random(thread);
      for (int i = 0; i < 100; ++i) {
        const auto offset = static_cast<int64_t>(random() % large_.size());
        const int64_t length =
            std::min<int64_t>(static_cast<int64_t>(random() % 400'000), file->size() - offset);
        if (i % 2) file->will_read(offset, length);
        wrong += bytes_at(*file, offset, length) != expected_at(offset, length);
      }
    });
  threads.clear();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_GT(store_.proxy.faults_made(), 5);
}

TEST_F(StreamedFileTest, WhatIsReadForwardIsFetchedAheadInFewRequests) {
  const auto file = StreamedFile::open("s3://bucket/large");
  for (int64_t offset = 0; offset < file->size(); offset += 5000) {
    const int64_t length = std::min<int64_t>(5000, file->size() - offset);
    ASSERT_EQ(bytes_at(*file, offset, length), expected_at(offset, length)) << offset;
  }
  // 41 blocks: three alone until it is seen that they go forward, the others by eight.
  EXPECT_LE(store_.server.requests_of("GetObject"), 10);
}

TEST_F(StreamedFileTest, MemoryIsBounded) {
  set_stream_memory(kMebibyte);
  take_stream_memory_peak();
  store_.server.put("bucket", "other", large_);
  const auto file = StreamedFile::open("s3://bucket/other");
  file->will_read(0, file->size());
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const auto offset = static_cast<int64_t>(random() % (large_.size() - 100'000));
    file->will_read(offset, 100'000);
    ASSERT_EQ(bytes_at(*file, offset, 100'000), expected_at(offset, 100'000));
  }
  EXPECT_LE(take_stream_memory_peak(), kMebibyte + (256 << 10));  // two blocks that one reader waits for
}

TEST_F(StreamedFileTest, WhatChangesMeanwhileIsAnErrorWithBothEtags) {
  const auto file = StreamedFile::open("s3://bucket/large");
  const auto change_to = [&](const std::string& content) {
    store_.server.put("bucket", "large", content);
    const std::string text = message_of<IoError>([&] { bytes_at(*file, 3 * kMebibyte, 10); });
    EXPECT_THAT(text, testing::AllOf(testing::HasSubstr("'s3://bucket/large' has changed"),
                                     testing::HasSubstr(file->version()),
                                     testing::HasSubstr(stat("s3://bucket/large").etag),
                                     testing::HasSubstr("begin again")));
  };
  change_to(random_bytes(5 << 20, 9));
  store_.server.set_hears_conditions(false);
  change_to(random_bytes(5 << 20, 10));
  change_to("shorter");
  store_.server.set_hears_conditions(true);
  EXPECT_THROW(StreamedFile::open("s3://bucket/none"), NotFound);
}

TEST_F(StreamedFileTest, AWrongEtagOnTheWayIsNoChange) {
  const auto file = StreamedFile::open("s3://bucket/large");
  store_.proxy.set_plan([](const std::string& operation, int64_t number) -> testing_store::Happening {
    return {operation == "GetObject" && number == 0 ? Fault::kWrongEtag : Fault::kNone};
  });
  EXPECT_EQ(bytes_at(*file, 3 * kMebibyte, 10), expected_at(3 * kMebibyte, 10));
  EXPECT_EQ(store_.proxy.faults_made(), 1);
}

TEST_F(StreamedFileTest, WeakEtagsTellOfAChange) {
  store_.server.set_weak_etags(true);
  const auto file = StreamedFile::open("s3://bucket/large");
  EXPECT_EQ(bytes_at(*file, 3 * kMebibyte, 10), expected_at(3 * kMebibyte, 10));
  store_.server.put("bucket", "large", random_bytes(5 << 20, 9));
  EXPECT_THAT(message_of<IoError>([&] { bytes_at(*file, 4 * kMebibyte, 10); }),
              testing::HasSubstr("'s3://bucket/large' has changed"));
}

}  // namespace
}  // namespace mox::file
