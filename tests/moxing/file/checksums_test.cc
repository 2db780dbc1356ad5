// Objects whose ETags are no MD5s: those that a key service or the owner's own key has encrypted, and what
// other checksums say of them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/s3/checksum.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_store::Fault;
using testing_store::Parameters;

const std::string kSealed = "x-amz-server-side-encryption", kSha256 = "x-amz-checksum-sha256",
                  kCrc32c = "x-amz-checksum-crc32c", kComputed = "computed";

class EncryptedObjects : public testing::TestWithParam<Parameters> {
 protected:
  EncryptedObjects() { store_.server.set_encryption(GetParam()); }
  StoreFixture store_;
  TemporaryDirectory directory_;
  const std::string large_ = random_bytes((17 << 20) + 3);
};

INSTANTIATE_TEST_SUITE_P(
    By, EncryptedObjects,
    testing::Values(Parameters{{kSealed, "aws:kms"}}, Parameters{{kSealed, "aws:kms:dsse"}},
                    Parameters{{"x-amz-server-side-encryption-customer-algorithm", "AES256"}}));

TEST_P(EncryptedObjects, AreGoodWithoutAnMd5) {
  write(directory_.file("from/small"), "abc");
  write(directory_.file("from/large"), large_);
  EXPECT_EQ(copy_parallel(directory_.file("from"), "s3://bucket/up").files, 2);
  EXPECT_EQ(read("s3://bucket/up/small"), "abc");
  EXPECT_TRUE(read("s3://bucket/up/large") == large_);
  EXPECT_EQ(copy_parallel("s3://bucket/up", directory_.file("to")).unchecked, 2);
  EXPECT_TRUE(read(directory_.file("to/large")) == large_);
  EXPECT_EQ(copy_parallel("s3://bucket/up", "s3://bucket/again").files, 2);
  EXPECT_TRUE(*store_.server.content("bucket", "again/large") == large_);
}

// Where one of the two buckets has a key.
TEST_P(EncryptedObjects, AreCopiedWithinTheStoreFromOthers) {
  store_.server.set_encryption({});
  write("s3://bucket/a", "abc");
  store_.server.set_encryption(GetParam());
  copy("s3://bucket/a", "s3://bucket/b");
  EXPECT_EQ(*store_.server.content("bucket", "b"), "abc");
}

class Checksums : public testing::TestWithParam<Parameters> {
 protected:
  Checksums() {
    store_.server.set_encryption({{kSealed, "aws:kms"}});
    store_.server.set_checksums(GetParam());
    store_.server.put("bucket", "d/small", small_);
    store_.server.put("bucket", "d/large", large_);
  }
  // Copies both, and says how many of them were not checked.
  int64_t unchecked_downloads() {
    const int64_t unchecked = copy_parallel("s3://bucket/d", directory_.file("to")).unchecked;
    EXPECT_EQ(read(directory_.file("to/small")), small_);
    EXPECT_TRUE(read(directory_.file("to/large")) == large_);
    EXPECT_EQ(read("s3://bucket/d/small"), small_);
    EXPECT_TRUE(read("s3://bucket/d/large") == large_);
    return unchecked;
  }
  StoreFixture store_;
  TemporaryDirectory directory_;
  const std::string small_ = random_bytes(5000), large_ = random_bytes((17 << 20) + 3, 2);
};
class ChecksumsOfParts : public Checksums {};

INSTANTIATE_TEST_SUITE_P(Of, Checksums,
                         testing::Values(Parameters{{kSha256, kComputed}}, Parameters{{kCrc32c, kComputed}},
                                         Parameters{{kSha256, kComputed},
                                                    {"x-amz-checksum-type", "FULL_OBJECT"}}));
INSTANTIATE_TEST_SUITE_P(
    Of, ChecksumsOfParts,
    testing::Values(Parameters{{kSha256, std::string(43, 'A') + "=-3"}}, Parameters{{kCrc32c, "AAAAAA==-3"}},
                    Parameters{{kCrc32c, "AAAAAA=="}, {"x-amz-checksum-type", "COMPOSITE"}}));

TEST_P(Checksums, OfDownloads) { EXPECT_EQ(unchecked_downloads(), 0); }

TEST_P(ChecksumsOfParts, SayNothingOfTheWhole) { EXPECT_EQ(unchecked_downloads(), 2); }

TEST_P(Checksums, FindAFlippedBit) {
  const auto damage_first = [this] {
    store_.proxy.set_plan([done = false](const std::string& operation, int64_t) mutable {
      const bool is_first = operation == "GetObject" && !std::exchange(done, true);
      return testing_store::Happening{is_first ? Fault::kDamagedBody : Fault::kNone};
    });
  };
  for (const auto& [name, content] : {std::pair("small", small_), std::pair("large", large_)}) {
    damage_first();
    const std::string to = directory_.file(name);
    EXPECT_EQ(copy(std::string("s3://bucket/d/") + name, to).unchecked, 0);
    EXPECT_TRUE(read(to) == content) << name;
  }
  damage_first();
  EXPECT_EQ(read("s3://bucket/d/small"), small_);
  damage_first();
  EXPECT_THAT(message_of<DataError>([] { read("s3://bucket/d/large"); }),
              AllOf(HasSubstr("'s3://bucket/d/large' has arrived with another content"),
                    testing::ContainsRegex("SHA-256|CRC-32C")));
}

TEST_P(Checksums, OfADamagedObjectRefuseIt) {
  store_.server.set_checksums({{kSha256, std::string(43, 'A') + "="}});
  for (const char* name : {"small", "large"}) {
    EXPECT_THAT(
        message_of<IoError>([&] { copy(std::string("s3://bucket/d/") + name, directory_.file(name)); }),
        HasSubstr("another content than its SHA-256 AAAA"))
        << name;
    EXPECT_FALSE(exists(directory_.file(name)));
  }
}

TEST(ChecksumTest, KnownValues) {
  using Kind = s3::Checksum::Kind;
  for (const auto& [kind, expected] :
       {std::pair(Kind::kCrc32c, "4waSgw=="),
        std::pair(Kind::kSha256, "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=")}) {
    s3::ChecksumHasher hasher(kind);
    hasher.update("1234");
    hasher.update("56789");
    EXPECT_EQ(hasher.finish(), expected);
  }
}

}  // namespace
}  // namespace mox::file
