// What an address shows of who asks: nothing, however it is spelt; and all of what is no secret.
#include "moxing/file/masked_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/file/internal/url.h"
#include "runtime/base/error.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Masked {
  std::string text, expected;
};

void expect_masked(const std::vector<Masked>& cases) {
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(masked_address(text), expected) << text;
    EXPECT_EQ(masked_address(expected), expected) << "once more";
    EXPECT_TRUE(is_masked_address(expected)) << expected;
    EXPECT_FALSE(is_masked_address(text)) << text;
  }
}

// Reserved characters that nobody has written as %2F and the like.
TEST(MaskedAddress, PasswordsAsPeopleWriteThem) {
  expect_masked({
      {"https://me:hunter2@host/", "https://***@host/"},
      {"https://hunter2@host/", "https://***@host/"},
      {"https://me:12/hunter2@host/", "https://***@host/"},  // begins like a port
      {"https://me.you:12/hunter2@host/", "https://***@host/"},
      {"https://me:/hunter2@host/", "https://***@host/"},
      {"https://me:#hunter2@host/", "https://***@host/"},
      {"https://me:?hunter2@host/", "https://***@host/"},
      {"https://me:12?hunter2@host/", "https://***@host/"},
      {"https://hunter/2@host/", "https://***@host/"},
      {"https://hunter#2@host/", "https://***@host/"},
      {"https://hun/ter:2@host/", "https://***@host/"},
      {"https:///me:hunter2@host/", "https://***@host/"},
      {"https:/me:hunter2@host/", "***@host/"},
      {"https://me:hunter 2@host/", "https://***@host/"},
      {"https://me:12 hunter2@host/", "https://***@host/"},
      {"https://me:h u n t e r 2@host/", "https://***@host/"},
      {"https://me:hunter,2@host/", "https://***@host/"},
      {"https://me:hun@ter2@host/", "https://***@host/"},
      {"https://me:hun@ter/2@host/", "https://***@host/"},
      {"https://me:hun@ter,2@host/", "https://***@host/"},
      {"https://:hunter2@host/", "https://***@host/"},
      {"https://me@corp.com:hunter2@host/", "https://***@host/"},
      {"https://me@corp.com:12/hunter2@host/", "https://***@host/"},
      {"https://me@corp.com:hun ter:2@host/", "https://***@host/"},
      {"https://DOMAIN/me:hunter 2@host/", "https://***@host/"},
      {"s3://AKIA1:hun/ter2@bucket/key", "s3://***@bucket/key"},
      {"s3://AKIA1:12/hunter2@bucket/key", "s3://***@bucket/key"},
      {"s3:/AKIA1:hunter2@bucket/key", "***@bucket/key"},
      {"S3://hunter2@bucket/a@b", "S3://***@bucket/a@b"},
      {"file://me:hunter2@host/a", "file://***@host/a"},
      {"https://me:hunter2@127.0.0.1:9000/a", "https://***@127.0.0.1:9000/a"},
      {"https://me:hunter2@[::1]:9000/a@b", "https://***@[::1]:9000/a@b"},
      {"jdbc:postgresql://me:hunter2@host/a", "***@host/a"},
      {"https://web.example.org/https://me:hunter2@host/", "https://web.example.org/https://***@host/"},
  });
}

TEST(MaskedAddress, PasswordsWithoutAScheme) {
  expect_masked({
      {"me:hunter2@host", "***@host"},
      {":hunter2@host", "***@host"},
      {":hun,ter2@host", "***@host"},
      {"me@corp.com:hun ter:2@host", "***@host"},
      {"me:hunter2@", "***@"},
      {"me@corp.com:hunter2@host", "***@host"},
      {"me@corp.com:hunter 2@host", "***@host"},
      {"DOMAIN/me:hunter2@host", "***@host"},
      {"DOMAIN\\me:hunter2@host", "***@host"},
      {"//me:hunter2@host/", "//***@host/"},
      {"//DOMAIN/me:hunter2@host/", "//***@host/"},
      {"me:hunter 2@host", "***@host"},
      {"me:hunter,2@host", "***@host"},
      {"me:/hunter2@host", "***@host"},
      {"me:,hunter2@host", "***@host"},
      {"me:hunt /er2@host", "***@host"},
  });
}

// Each keeps its host.
TEST(MaskedAddress, SeveralInOneText) {
  expect_masked({
      {"https://me:pw@h/,user:hunter2@h2", "https://***@h/,***@h2"},
      {"user:a@h2,user:b@h3", "***@h2,***@h3"},
      {"user:a@h2 user:b@h3", "***@h2 ***@h3"},
      {"user:a@h2, user:b@h3", "***@h2, ***@h3"},
      {"https://a:b@c.org/,http://d:e@f/g", "https://***@c.org/,http://***@f/g"},
      {"http://a:b@c http://d:e@f/g", "http://***@c http://***@f/g"},
      {"proxy=http://a:b@c:80/", "proxy=http://***@c:80/"},
      {"http://h/?token=x,http://d:e@f/g", "http://h/?token=***,http://***@f/g"},
      {"me:a@h,http://b/,ftp://me:hun/ter2@c/d", "***@h,http://b/,ftp://***@c/d"},
  });
}

TEST(MaskedAddress, SecretsInQueries) {
  expect_masked({
      {"https://b.example.org/k?X-Amz-Credential=AK%2Fus&X-Amz-Date=2026&X-Amz-Signature=hunter2",
       "https://b.example.org/k?X-Amz-Credential=***&X-Amz-Date=2026&X-Amz-Signature=***"},
      {"https://host/a?X-Amz-Security-Token=hunter2#part", "https://host/a?X-Amz-Security-Token=***#part"},
      {"https://host/a?AWSAccessKeyId=AK&Expires=7&Signature=hunter2",
       "https://host/a?AWSAccessKeyId=***&Expires=7&Signature=***"},
      {"https://host/a?sv=2026&sig=hunter2", "https://host/a?sv=2026&sig=***"},
      {"https://host/a?token=hunter2", "https://host/a?token=***"},
      {"host/a?v=1;token=hunter2", "host/a?v=1;token=***"},
      {"https://host/#access_token=hunter2&state=1", "https://host/#access_token=***&state=1"},
      {"https://host/a?API-Key=hunter2&v=1", "https://host/a?API-Key=***&v=1"},
      {"https://host/a?key=hunter2", "https://host/a?key=***"},
      {"https://host/a?password=hunt er,2", "https://host/a?password=***"},
      {"https://host/a?client_secret=hunter2 ", "https://host/a?client_secret=*** "},
      {"https://me:pw@host/a?auth[token]=hunter2", "https://***@host/a?auth[token]=***"},
      {"https://host/a?api%5Fkey=hunter2", "https://host/a?api%5Fkey=***"},
      {"AccountName=me;AccountKey=hunter2==", "AccountName=me;AccountKey=***"},
  });
}

TEST(MaskedAddress, TextsThatNameNobodyStayAsTheyAre) {
  for (const std::string text : {
           "",
           "a@b",
           ":@x",
           "***",
           "a***@b",
           "me@corp.com",
           "mail me@corp.com",
           "contact: me@corp.com",
           "a@corp.com,b@corp.com",
           "me@host:folder",
           "photograph@2x.png",
           "/data/a:b@c",
           "./a:b@c",
           "../a:b@c",
           "~/a:b@c",
           "runs/2026-11-26T10:30",
           "2:0.5,5:0.05",
           "0.1 until 3, then 0.01",
           "key=a,b=c",
           "s3://bucket/a@b",
           "s3://bucket/a@b:c",
           "s3://bucket/x:y@z",
           "obs://bucket/photographs@2x/",
           "file:///a@b/c:d@e",
           "http://host:9000/photographs",
           "http://127.0.0.1:9000/photographs@2x",
           "http://localhost:9000/photographs@2x",
           "https://[::1]:9000/a@b",
           "https://example.org/@me/package@1.2",
           "https://example.org/?mail=me@corp.com&monkeys=3",
           "https://example.org/?tokenizer=bert&max_tokens=7&token=",
           "https://example.org/a,me@corp.com",
           "http://a:80,http://b:80",
       }) {
    EXPECT_EQ(masked_address(text), text);
    EXPECT_FALSE(is_masked_address(text)) << text;
  }
}

// What cannot be told from a password is not shown.
TEST(MaskedAddress, InDoubtIsMasked) {
  expect_masked({
      {"http://host:9000/photographs@2x", "http://***@2x"},  // me:9000/hunter2@host
      {"http://host/photographs@2x", "http://***@2x"},       // hunter/2@host
      {"a:b@c,http://d:80/e@f", "***@c,http://***@f"},
  });
}

TEST(MaskedAddress, WhatWasMaskedIsSeenWhereverItStands) {
  for (const std::string text : {"a,***@b", "a ***@b", "x***@y,***@b", "//***@b", "https://h/?a=1&token=***",
                                 "https://h/?key=,https://h2/?key=***"})
    EXPECT_TRUE(is_masked_address(text)) << text;
}

// A configuration may be 4 MiB long: the time grows as the text does.
TEST(MaskedAddress, LongTexts) {
  for (const std::string part :
       {"=***", "a:b@c,", "a:b,", "://", "a://", "?token=", "&key=***", "***@", "@", ",", "a"}) {
    std::string text;
    while (text.size() < 1 << 20) text += part;
    EXPECT_EQ(is_masked_address(text + " x"), is_masked_address(part)) << part;
    EXPECT_LE(masked_address(text).size(), 2 * text.size()) << part;
  }
}

TEST(MaskedAddress, InMessagesAboutNamesOfFiles) {
  const std::string long_key(1100, 'k');
  for (const std::string& text :
       {std::string("s3:/me:hunter2@bucket/a"), std::string("s3:me:hunter2@bucket/a"),
        std::string("s3//me:hunter2@bucket/a"), std::string("obs//bucket/a?token=hunter2"),
        std::string("s3://me:hunter2@bucket/a"), std::string("https://me:12/hunter2@bucket/a"),
        std::string("file://me:hunter2@host/a"), std::string("me:hunter2\0@host", 16),
        std::string("https://me:hunter2@host/\0", 25), "s3://bucket/a?token=hunter2&" + long_key}) {
    const std::string message = message_of<InvalidArgument>([&] { internal::parse_url(text); });
    EXPECT_THAT(message, AllOf(Not(""), HasSubstr("***"), Not(HasSubstr("hunter2")))) << text;
  }
}

}  // namespace
}  // namespace mox::file
