#include "moxing/file/s3/documents.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "moxing/file/s3/retry.h"
#include "runtime/base/error.h"

namespace mox::file::s3 {
namespace {

TEST(DocumentsTest, Listings) {
  const Listing listing = parse_listing(
      "<?xml version='1.0'?><ListBucketResult "
      "xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><EncodingType>url</EncodingType>"
      "<IsTruncated>true</IsTruncated><NextContinuationToken>t &amp; "
      "u</NextContinuationToken><Contents><Key>a+b%2Bc%0A</Key>"
      "<LastModified>2024-02-29T23:59:58.000Z</LastModified><ETag>&quot;e&quot;</ETag><Size>7</Size></"
      "Contents>"
      "<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes></ListBucketResult>");
  ASSERT_EQ(listing.objects.size(), 1u);
  EXPECT_EQ(listing.objects[0].key, "a b+c\n");
  EXPECT_EQ(listing.objects[0].etag, "e");
  EXPECT_EQ(std::chrono::system_clock::to_time_t(listing.objects[0].mtime), 1709251198);
  EXPECT_EQ(listing.next_token, "t & u");
  EXPECT_EQ(listing.prefixes.at(0), "d/");
  for (const char* text :
       {"", "no xml", "<Other/>", "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key></Key><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents>",
        // a page that only looks like the last one
        "<ListBucketResult><IsTruncated>trud</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
        "</ListBucketResult>",
        "<ListBucketResult><IsTruncated>tru</IsTruncated></ListBucketResult>",
        "<ListBucketResult><NextContinuationToken>t</NextContinuationToken></ListBucketResult>",
        // a flipped bit: <Key>c</Key>
        "<ListBucketResult><Contents><Key>b</Key><Size>1</Size></Contents>"
        "<Contents><Key>b</Key><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes>"
        "<CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes></ListBucketResult>",
        "<ListBucketResult><Contents><Key>b</Key><Size>70368744177665</Size></Contents></ListBucketResult>",
        "<ListBucketResult><KeyCount>2</KeyCount><Contents><Key>b</Key><Size>1</Size></Contents>"
        "</ListBucketResult>"})
    EXPECT_THROW(parse_listing(text), DataError) << text;
}

TEST(DocumentsTest, TheNumberOfNamesOfAListing) {
  const std::string names =
      "<Contents><Key>b</Key><Size>1</Size></Contents><CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes>";
  for (const char* count : {"", "<KeyCount>1</KeyCount>", "<KeyCount>2</KeyCount>"})
    EXPECT_NO_THROW(parse_listing("<ListBucketResult>" + names + count + "</ListBucketResult>")) << count;
  for (const char* count : {"<KeyCount>0</KeyCount>", "<KeyCount>3</KeyCount>", "<KeyCount>x</KeyCount>"})
    EXPECT_THROW(parse_listing("<ListBucketResult>" + names + count + "</ListBucketResult>"), DataError)
        << count;
}

// How pages of ListObjects go on, which have no token.
TEST(DocumentsTest, MarkersOfListings) {
  const std::string key = "<Contents><Key>b%2Bc</Key><Size>1</Size></Contents>",
                    prefix = "<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>",
                    later = "<CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes>",
                    next = "<NextMarker>d%2B</NextMarker>", encoded = "<EncodingType>url</EncodingType>";
  const auto marker = [](const std::string& content, const char* more = "true") {
    const Listing listing = parse_listing(
        fmt::format("<ListBucketResult><IsTruncated>{}</IsTruncated>{}</ListBucketResult>", more, content));
    EXPECT_EQ(listing.next_token, "");
    return listing.next_marker;
  };
  EXPECT_EQ(marker(key), "b%2Bc");
  EXPECT_EQ(marker(encoded + key), "b+c");
  EXPECT_EQ(marker(key + prefix), "b%2Bc");
  EXPECT_EQ(marker(key + later), "c/");
  EXPECT_EQ(marker(key + next), "d%2B");
  EXPECT_EQ(marker(encoded + key + next), "d+");
  EXPECT_EQ(marker(key, "false"), "");
  EXPECT_THROW(marker(""), DataError);
  EXPECT_THROW(parse_listing("<ListBucketResult>" + key + next + "</ListBucketResult>"), DataError);
}

TEST(DocumentsTest, Refusals) {
  EXPECT_EQ(parse_refusal("<Error><Code>SlowDown</Code><RequestId>1</RequestId></Error>").code, "SlowDown");
  EXPECT_EQ(parse_refusal("<html>proxy</html>").code, "");
  EXPECT_EQ(parse_refusal("").code, "");
}

TEST(DocumentsTest, Times) {
  const auto seconds = [](const char* text) {
    return std::chrono::system_clock::to_time_t(parse_time(text));
  };
  EXPECT_EQ(seconds("2015-03-01T12:34:56.000Z"), 1425213296);
  EXPECT_EQ(seconds("Sun, 01 Mar 2015 12:34:56 GMT"), 1425213296);
  EXPECT_EQ(seconds("Wed, 31 Dec 2025 23:59:59 GMT"), 1767225599);
  for (const char* wrong :
       {"", "Sun", "Sun, 01 Foo 2015 12:34:56 GMT", "Sun, 01 anF 2015 12:34:56 GMT",
        "Sun, 00 Mar 2015 12:34:56 GMT", "Sun, 01 Mar 2015 24:00:00 GMT", "Sun, 01 Mar 2015 12:-1:00 GMT",
        "So., 01 M\xc3\xa4r 2015 12:34:56 GMT", "2015-03-01"})
    EXPECT_EQ(seconds(wrong), 0) << wrong;
}

TEST(DocumentsTest, TimesToWait) {
  EXPECT_EQ(parse_retry_after("2"), 2.0);
  EXPECT_EQ(parse_retry_after("Thu, 01 Jan 2015 00:00:00 GMT"), 0.0);
  EXPECT_EQ(parse_retry_after(""), std::nullopt);
  EXPECT_EQ(parse_retry_after("-1"), std::nullopt);
  EXPECT_EQ(parse_retry_after("soon"), std::nullopt);
}

TEST(DocumentsTest, WhatIsRepeated) {
  for (const int status : {429, 500, 502, 503, 504}) EXPECT_TRUE(worth_repeating(status, ""));
  for (const int status : {400, 401, 403, 404, 405, 409, 411, 412, 416, 501})
    EXPECT_FALSE(worth_repeating(status, ""));
  EXPECT_TRUE(worth_repeating(400, "RequestTimeout"));
}

}  // namespace
}  // namespace mox::file::s3
