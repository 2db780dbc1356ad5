#include "moxing/file/streams/streamed_objects.h"

#include <gmock/gmock.h>

#include "moxing/file/streams/streamed_file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing_store::Fault;

class StreamedObjectsTest : public testing::Test {
 protected:
  StreamedObjectsTest() {
    set_stream_memory(int64_t{64} << 20);
    for (int i = 0; i < 50; ++i) put(i, static_cast<unsigned>(i));
  }
  static std::string url(int i) { return "s3://bucket/small/" + std::to_string(i); }
  static std::string content(unsigned seed) { return random_bytes(1000, seed); }
  void put(int i, unsigned seed) { store_.server.put("bucket", "small/" + std::to_string(i), content(seed)); }
  // Nothing that was read stays in memory.
  static void forget() { set_stream_memory(1); }

  StoreFixture store_;
};

TEST_F(StreamedObjectsTest, ComeThroughFaultsAndAreAskedForOnce) {
  store_.proxy.set_plan([](const std::string&, int64_t number) -> testing_store::Happening {
    if (number % 3 == 1) return {Fault::kResetInAnswer, 0.9};
    if (number % 7 == 3) return {Fault::kStatus503};
    if (number % 11 == 5) return {Fault::kTruncated, 0.5};
    return {};
  });
  const StreamedObjects objects(std::vector<std::string>(51));
  for (int i = 0; i < 50; ++i) objects.will_read(i, url(i));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(*objects.read(i, url(i)), content(static_cast<unsigned>(i)));
  EXPECT_GT(store_.proxy.faults_made(), 5);
  store_.proxy.set_plan({});
  const int64_t requests = store_.server.requests();
  for (int i = 0; i < 50; ++i) objects.read(i, url(i));
  EXPECT_EQ(store_.server.requests(), requests);
  EXPECT_THROW(objects.read(50, "s3://bucket/none"), NotFound);
}

TEST_F(StreamedObjectsTest, OfAStoreThatWasAwayAreAskedForAgain) {
  auto options = store_.options();
  options.attempts = 2;
  store_.use(options);
  const StreamedObjects objects({""});
  store_.proxy.set_away(true);
  objects.will_read(0, url(0));
  EXPECT_THROW(objects.read(0, url(0)), IoError);
  store_.proxy.set_away(false);
  EXPECT_EQ(*objects.read(0, url(0)), content(0));
}

TEST_F(StreamedObjectsTest, ThatChangeAfterTheirFirstReadingAreErrors) {
  const StreamedObjects objects({""});
  objects.read(0, url(0));
  forget();
  EXPECT_EQ(*objects.read(0, url(0)), content(0));
  const std::string before = stat(url(0)).etag;
  put(0, 99);
  forget();
  for (int reading = 0; reading < 2; ++reading)
    EXPECT_THAT(message_of<IoError>([&] { objects.read(0, url(0)); }),
                testing::AllOf(testing::HasSubstr("'" + url(0) + "' has changed"), testing::HasSubstr(before),
                               testing::HasSubstr(stat(url(0)).etag)));
  // Another set begins with what is there now, whatever lies in memory.
  set_stream_memory(int64_t{64} << 20);
  EXPECT_EQ(*StreamedObjects({""}).read(0, url(0)), content(99));
  put(0, 100);
  EXPECT_EQ(*StreamedObjects({""}).read(0, url(0)), content(100));
}

TEST_F(StreamedObjectsTest, ThatChangeAfterTheirListingAreErrors) {
  const StreamedObjects objects({stat(url(0)).etag, stat(url(1)).etag});
  put(1, 99);
  EXPECT_EQ(*objects.read(0, url(0)), content(0));
  EXPECT_THAT(message_of<IoError>([&] { objects.read(1, url(1)); }), testing::HasSubstr("has changed"));
}

TEST_F(StreamedObjectsTest, MayBeListedWithAnotherEtagThanTheyAreSentWith) {
  store_.server.set_lists_other_etags(true);
  const StreamedObjects objects({scan_dir("s3://bucket/small")[0].stat.etag});
  ASSERT_NE(stat(url(0)).etag, scan_dir("s3://bucket/small")[0].stat.etag);
  EXPECT_EQ(*objects.read(0, url(0)), content(0));
  forget();
  objects.read(0, url(0));
  put(0, 99);
  forget();
  EXPECT_THAT(message_of<IoError>([&] { objects.read(0, url(0)); }), testing::HasSubstr("has changed"));
}

// Their answers tell nothing then: the store is asked, and what is known stays known.
TEST_F(StreamedObjectsTest, MayBeSentWithoutAnEtag) {
  const StreamedObjects objects({stat(url(0)).etag, ""});
  for (const int i : {0, 1}) EXPECT_EQ(*objects.read(i, url(i)), content(static_cast<unsigned>(i)));
  store_.server.set_sends_etags(false);
  forget();
  for (const int i : {0, 1}) EXPECT_EQ(*objects.read(i, url(i)), content(static_cast<unsigned>(i)));
  for (const int i : {0, 1}) {
    const std::string before = stat(url(i)).etag;
    put(i, 99);
    forget();
    store_.server.set_sends_etags(i == 0);
    EXPECT_THAT(message_of<IoError>([&] { objects.read(i, url(i)); }),
                testing::AllOf(testing::HasSubstr("'" + url(i) + "' has changed"), testing::HasSubstr(before),
                               testing::HasSubstr(stat(url(i)).etag)));
  }
}

TEST_F(StreamedObjectsTest, MayHaveWeakEtagsInSomeAnswers) {
  const StreamedObjects objects({stat(url(0)).etag});
  objects.read(0, url(0));
  store_.server.set_weak_etags(true);
  forget();
  EXPECT_EQ(*objects.read(0, url(0)), content(0));
  put(0, 99);
  forget();
  EXPECT_THAT(message_of<IoError>([&] { objects.read(0, url(0)); }), testing::HasSubstr("has changed"));
}

}  // namespace
}  // namespace mox::file
