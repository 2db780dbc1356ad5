#include "moxing/file/s3/signature.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "moxing/file/s3/digest.h"
#include "moxing/file/s3/uri.h"

namespace mox::file::s3 {
namespace {

using testing::EndsWith;

// The examples of "Signature Calculations for the Authorization Header" in Amazon's S3 API reference.
class PublishedExample : public testing::Test {
 protected:
  std::string signature_of(RequestToSign request, const std::string& body = "") {
    request.headers.emplace_back("host", "examplebucket.s3.amazonaws.com");
    request.payload_sha256 = hex(sha256(body));
    SigningKey key;
    sign(request, {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""}, "us-east-1",
         1369353600, key);
    return request.headers.back().second;
  }
};

TEST_F(PublishedExample, GetObject) {
  EXPECT_THAT(signature_of({.method = "GET",
                            .path = "/test.txt",
                            .query = {},
                            .headers = {{"range", "bytes=0-9"}},
                            .payload_sha256 = {}}),
              EndsWith("Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
}

TEST_F(PublishedExample, PutObject) {
  EXPECT_THAT(signature_of({.method = "PUT",
                            .path = "/" + percent_encode("test$file.text", true),
                            .query = {},
                            .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                        {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                            .payload_sha256 = {}},
                           "Welcome to Amazon S3."),
              EndsWith("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST_F(PublishedExample, GetBucketLifecycle) {
  EXPECT_THAT(
      signature_of(
          {.method = "GET", .path = "/", .query = {{"lifecycle", ""}}, .headers = {}, .payload_sha256 = {}}),
      EndsWith("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST_F(PublishedExample, ListObjects) {
  EXPECT_THAT(signature_of({.method = "GET",
                            .path = "/",
                            .query = {{"prefix", "J"}, {"max-keys", "2"}},
                            .headers = {},
                            .payload_sha256 = {}}),
              EndsWith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

// RFC 4231, test cases 1 and 6: a key that is shorter than a block of SHA-256, and one that is longer.
TEST(HmacTest, IsThatOfTheStandard) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(
      hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// What botocore signs (tests/fixtures/make_signature_fixtures.py).
TEST(SignatureTest, AgreesWithBotocore) {
  std::ifstream file(MOX_SOURCE_DIR "/tests/fixtures/signature_fixtures.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GT(cases.size(), 20u);
  SigningKey key;
  for (const nlohmann::json& one : cases) {
    RequestToSign request{.method = one["method"],
                          .path = "/bucket/" + percent_encode(from_hex(one["key"].get<std::string>()), true),
                          .query = {},
                          .headers = {{"host", "127.0.0.1:9000"}},
                          .payload_sha256 = one["payload"]};
    for (const auto& pair : one["query"]) request.query.emplace_back(pair[0], pair[1]);
    for (const auto& pair : one["headers"]) request.headers.emplace_back(pair[0], pair[1]);
    EXPECT_EQ("/bucket/" + one["path"].get<std::string>(), request.path);
    sign(request, {one["access"], one["secret"], one["token"]}, one["region"].get<std::string>(),
         one["time"].get<std::time_t>(), key);
    EXPECT_THAT(request.headers.back().second, EndsWith("Signature=" + one["signature"].get<std::string>()))
        << one;
  }
}

TEST(SigningKeyTest, IsMadeAnewForAnotherSecretRegionOrDay) {
  SigningKey kept;
  for (int round = 0; round < 2; ++round) {
    for (const auto& [secret, region, date] :
         std::vector<std::array<std::string, 3>>{{"one", "us-east-1", "20261126"},
                                                 {"two", "us-east-1", "20261126"},
                                                 {"two", "eu-west-1", "20261126"},
                                                 {"two", "eu-west-1", "20261127"},
                                                 {"one", "us-east-1", "20261126"},
                                                 {"one", "us-east-1", "20261126"}}) {
      SigningKey fresh;
      EXPECT_EQ(fresh.get(secret, region, date), kept.get(secret, region, date))
          << secret << " " << region << " " << date;
    }
  }
}

}  // namespace
}  // namespace mox::file::s3
