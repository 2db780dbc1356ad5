// Objects whose parts are not of one size. Their ETag says how many there are, and a store how long each is.
#include <gmock/gmock.h>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/store_client.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/put_in_parts.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing::HasSubstr;
using testing_store::Fault;

constexpr int64_t kMebibyte = 1 << 20;
// The first, taken for all of them, fits the number of parts. More than one request brings, and less.
const std::vector<int64_t> kLarge = {6 * kMebibyte, 7 * kMebibyte, 5 * kMebibyte},
                           kSmall = {5 * kMebibyte, 6 * kMebibyte, kMebibyte};

class ObjectsOfParts : public testing::Test {
 protected:
  static std::string put(const std::vector<int64_t>& sizes, int64_t said_size = 0) {
    return put_in_parts(*store_client(), {.bucket = "bucket", .key = "a"}, sizes, said_size);
  }
  // Copies it, and says how many files were not checked.
  int64_t unchecked(const std::string& content) {
    const std::string to = directory_.file("a");
    const CopyReport report = copy("s3://bucket/a", to, {.skip_same = false});
    EXPECT_TRUE(read(to) == content);
    EXPECT_TRUE(read("s3://bucket/a") == content);
    return report.unchecked;
  }
  // Each answer with bytes of the object has another bit.
  std::string refusal_of_damage() {
    store_.proxy.set_plan([](const std::string& operation, int64_t) -> testing_store::Happening {
      return {operation == "GetObject" ? Fault::kDamagedBody : Fault::kNone};
    });
    std::string text = message_of<IoError>([&] { copy("s3://bucket/a", directory_.file("damaged")); });
    EXPECT_FALSE(exists(directory_.file("damaged")));
    store_.proxy.set_plan({});
    return text;
  }

  StoreFixture store_;
  TemporaryDirectory directory_;
};

class UnequalParts : public ObjectsOfParts, public testing::WithParamInterface<std::vector<int64_t>> {};

INSTANTIATE_TEST_SUITE_P(Of, UnequalParts, testing::Values(kLarge, kSmall));

TEST_P(UnequalParts, AreComparedByTheirSizes) {
  EXPECT_EQ(unchecked(put(GetParam())), 0);
  EXPECT_EQ(copy("s3://bucket/a", directory_.file("a")).same_files, 1);
  EXPECT_THAT(refusal_of_damage(), HasSubstr("another content than its ETag"));
}

// Another tool has copied it with its metadata, and cut it in another way.
TEST_P(UnequalParts, AreNotWhatTheMetadataSays) {
  EXPECT_EQ(unchecked(put(GetParam(), GetParam().front())), 0);
  EXPECT_THAT(refusal_of_damage(), HasSubstr("another content than its ETag"));
}

TEST_P(UnequalParts, OfUnknownSizesAreComparedByTheChecksum) {
  store_.server.set_tells_first_part_alone(true);
  const std::string content = put(GetParam());
  EXPECT_EQ(unchecked(content), 1);
  store_.server.set_checksums({{"x-amz-checksum-sha256", "computed"}});
  EXPECT_EQ(unchecked(content), 0);
  EXPECT_THAT(refusal_of_damage(), HasSubstr("another content than its"));
}

// Where nobody says otherwise, this client's own word on its parts counts.
TEST_F(ObjectsOfParts, ThatAreDamagedAreRefusedByTheMetadata) {
  store_.server.set_tells_first_part_alone(true);
  put({9 * kMebibyte, 9 * kMebibyte, kMebibyte}, 9 * kMebibyte);
  EXPECT_THAT(refusal_of_damage(), HasSubstr("another content than its ETag"));
}

TEST_F(ObjectsOfParts, OfOneSizeAreAskedForOnce) {
  put({8 * kMebibyte, 8 * kMebibyte, kMebibyte});
  EXPECT_EQ(copy("s3://bucket/a", directory_.file("a")).unchecked, 0);
  // To find it, to copy it, and for its first part.
  EXPECT_EQ(store_.server.requests_of("HeadObject"), 3);
}

}  // namespace
}  // namespace mox::file
