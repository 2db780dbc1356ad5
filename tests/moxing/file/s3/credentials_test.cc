#include "moxing/file/s3/credentials.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "runtime/base/error.h"
#include "tests/support/temporary_directory.h"

namespace mox::file::s3 {
namespace {

using testing::HasSubstr;
using testing::Not;

// No variable of the machine's decides a test, and what a test sets is gone after it.
class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() {
    clear();
    ::setenv("HOME", home_.path().c_str(), 1);
  }
  ~CredentialsTest() override {
    clear();
    if (!former_home_.empty()) ::setenv("HOME", former_home_.c_str(), 1);
  }
  static void clear() {
    for (const char* name :
         {"ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SECURITY_TOKEN", "AWS_ACCESS_KEY_ID",
          "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE",
          "AWS_PROFILE", "S3_ENDPOINT", "S3_USE_HTTPS", "S3_VERIFY_SSL", "S3_REGION", "AWS_REGION",
          "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_CA_BUNDLE"})
      ::unsetenv(name);
  }
  TemporaryDirectory home_;
  const std::string former_home_ = std::getenv("HOME") ? std::getenv("HOME") : "";
};

TEST_F(CredentialsTest, OfTheEnvironment) {
  EXPECT_FALSE(local_credentials({}));
  ::setenv("AWS_ACCESS_KEY_ID", "aws", 1);
  EXPECT_THAT(message_of<ConfigError>([] { local_credentials({}); }), HasSubstr("AWS_SECRET_ACCESS_KEY"));
  ::setenv("AWS_SECRET_ACCESS_KEY", "aws secret", 1);
  ::setenv("AWS_SESSION_TOKEN", "token", 1);
  EXPECT_EQ(local_credentials({})->session_token, "token");
  ::setenv("ACCESS_KEY_ID", "moxing", 1);
  ::setenv("SECRET_ACCESS_KEY", "moxing secret", 1);
  EXPECT_EQ(local_credentials({})->access_key, "moxing");
  EXPECT_EQ(local_credentials({})->session_token, "");
}

// As people write them, and Amazon's own tools read them.
TEST_F(CredentialsTest, OfProfilesInOtherForms) {
  for (const char* text : {"\xef\xbb\xbf[default]\naws_access_key_id=one\naws_secret_access_key=s1\n",
                           "[default]\n  aws_access_key_id = one\n  aws_secret_access_key = s1\n",
                           "[default]\n\taws_access_key_id = one\n\taws_secret_access_key = s1\n",
                           "[default]\nAWS_ACCESS_KEY_ID = one\nAws_Secret_Access_Key = s1",
                           "[default]\n  s3 =\n    aws_access_key_id = nested\n  aws_access_key_id = one\n"
                           "  aws_secret_access_key = s1\n    and more\n"}) {
    home_.write(".aws/credentials", text);
    const auto found = local_credentials({});
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(found->access_key, "one") << text;
    EXPECT_EQ(found->secret_key, "s1") << text;
  }
}

TEST_F(CredentialsTest, OfProfilesThatHaveNoneSayWhy) {
  home_.write(".aws/config", "[default]\nregion = x\n[profile work]\nsso_session = a\n");
  EXPECT_FALSE(local_credentials({}));
  ::setenv("AWS_PROFILE", "work", 1);
  EXPECT_THAT(message_of<ConfigError>([] { local_credentials({}); }),
              testing::AllOf(HasSubstr("'work' gets its keys by sso_session"), HasSubstr("--format env")));
  ::setenv("AWS_PROFILE", "wrok", 1);
  EXPECT_THAT(message_of<ConfigError>([] { local_credentials({}); }),
              HasSubstr("AWS_PROFILE='wrok', and neither"));
  EXPECT_FALSE(local_credentials({.instance_metadata = true}));
}

TEST_F(CredentialsTest, OfProfiles) {
  home_.write(".aws/credentials",
              "# a comment\n[default]\naws_access_key_id = one\naws_secret_access_key=s=1\n"
              "[ other ]\r\naws_access_key_id=two\r\naws_secret_access_key = s2\r\naws_session_token = "
              "t2\r\n[half]\naws_access_key_id=x\n");
  home_.write(".aws/config",
              "[default]\nregion = eu-west-1\n[profile third]\naws_access_key_id=three\n"
              "aws_secret_access_key=s3\ns3 =\n  addressing_style = path\n");
  EXPECT_EQ(local_credentials({})->access_key, "one");
  EXPECT_EQ(local_credentials({})->secret_key, "s=1");
  EXPECT_EQ(region_of_profile({}), "eu-west-1");
  StoreOptions options;
  options.profile = "other";
  EXPECT_EQ(local_credentials(options)->session_token, "t2");
  options.profile = "third";
  EXPECT_EQ(local_credentials(options)->secret_key, "s3");
  options.profile = "half";
  EXPECT_THAT(message_of<ConfigError>([&] { local_credentials(options); }), HasSubstr("half"));
  // A profile that is asked for is taken, whatever the environment has.
  ::setenv("ACCESS_KEY_ID", "moxing", 1);
  ::setenv("SECRET_ACCESS_KEY", "moxing secret", 1);
  options.profile = "other";
  EXPECT_EQ(local_credentials(options)->access_key, "two");
  options.profile = "none";
  EXPECT_THAT(message_of<ConfigError>([&] { local_credentials(options); }), HasSubstr("the profile 'none'"));
  ::setenv("AWS_PROFILE", "none", 1);
  EXPECT_EQ(local_credentials({})->access_key, "moxing");
}

TEST_F(CredentialsTest, AFileThatIsNoneIsNamedAndNotShown) {
  for (const char* text : {"[default\nx=SECRET\n", "SECRET\n", "[default]\nSECRET\n"})
    EXPECT_THAT(message_of<DataError>([&] { parse_profile(text, "FILE", "default"); }),
                testing::AllOf(HasSubstr("FILE:"), Not(HasSubstr("SECRET"))));
}

TEST_F(CredentialsTest, OptionsOfTheEnvironment) {
  ::setenv("S3_ENDPOINT", "obs.example.com", 1);
  EXPECT_EQ(options_from_environment().endpoint, "https://obs.example.com");
  ::setenv("S3_USE_HTTPS", "0", 1);
  EXPECT_EQ(options_from_environment().endpoint, "http://obs.example.com");
  ::setenv("S3_ENDPOINT", "https://obs.example.com:8443/", 1);
  EXPECT_EQ(options_from_environment().endpoint, "https://obs.example.com:8443");
  ::setenv("S3_ENDPOINT", "HTTP://obs.example.com", 1);
  EXPECT_EQ(options_from_environment().endpoint, "http://obs.example.com");
  ::setenv("S3_VERIFY_SSL", "0", 1);
  EXPECT_FALSE(options_from_environment().verify_tls);
  ::setenv("S3_VERIFY_SSL", "perhaps", 1);
  EXPECT_THROW(options_from_environment(), ConfigError);
  ::unsetenv("S3_VERIFY_SSL");
  ::setenv("AWS_REGION", "r2", 1);
  EXPECT_EQ(options_from_environment().region, "r2");
  ::setenv("S3_REGION", "r1", 1);
  EXPECT_EQ(options_from_environment().region, "r1");
  for (const char* region : {"us east", "us-east-1\r\nx: y", "us/east"}) {
    ::setenv("S3_REGION", region, 1);
    EXPECT_THAT(message_of<ConfigError>([] { options_from_environment(); }), HasSubstr("S3_REGION"));
  }
  StoreOptions given;
  given.region = "r0";
  EXPECT_EQ(options_from_environment(given).region, "r0");
  ::setenv("S3_ENDPOINT", "http://key:secret@host", 1);
  EXPECT_THAT(message_of<ConfigError>([] { options_from_environment(); }), Not(HasSubstr("secret@")));
}

TEST(MetadataTest, Documents) {
  const TemporaryCredentials found = parse_metadata_credentials(
      R"({"AccessKeyId":"a","SecretAccessKey":"s","Token":"t","Expiration":"2030-01-01T00:00:00Z"})");
  EXPECT_EQ(found.credentials.session_token, "t");
  for (const char* text : {"", "{}", R"({"AccessKeyId":1})", R"({"SecretAccessKey":"SECRET")"})
    EXPECT_THAT(message_of<DataError>([&] { parse_metadata_credentials(text); }), Not(HasSubstr("SECRET")));
}

}  // namespace
}  // namespace mox::file::s3
