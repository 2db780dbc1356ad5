// Secrets: what is written, shown and said of flags that are secret, and of addresses that name who asks.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "moxing/config/flags.h"
#include "moxing/config/init.h"
#include "runtime/base/error.h"
#include "tests/moxing/config/config_testing.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSecret = "hunter2";
constexpr const char* kEndOfSecret = "unter2";  // -h is a flag
constexpr const char* kAddress = "https://me:hunter2@example.org/data";

std::optional<std::string> configured_with(const std::vector<std::string>& arguments) {
  define_secret_flag("api_key", "The key of the service.");
  define_secret_flag("service.token", "Its token.");
  define_flag("service_url", "", "Where the service is.");
  define_flag("mirrors", std::vector<std::string>{}, "Where else.");
  return configure({.program = "p", .arguments = arguments});
}

// What a command line is refused with, or what is thrown behind it.
std::string refused(const std::vector<std::string>& arguments) {
  ScopedConfiguration scope;
  return message_of<ConfigError>([&] { configured_with(arguments); });
}

TEST(SecretFlags, AreReadLikeOthers) {
  ScopedConfiguration scope;
  const TemporaryFile yaml("service:\n  token: ${HOME}x\n");
  ASSERT_FALSE(configured_with({"--api_key=hunter2", "--config=" + yaml.path()}));
  EXPECT_EQ(flag("api_key"), kSecret);
  EXPECT_EQ(get_flag<std::string>("api_key"), kSecret);
  EXPECT_EQ(flag("service.token"), std::string(std::getenv("HOME")) + "x");
  EXPECT_EQ(option_origin("api_key"), "command line");
}

TEST(SecretFlags, AreNotInTheConfigurationThatIsWritten) {
  ScopedConfiguration scope;
  ASSERT_FALSE(configured_with({"--api_key=hunter2", "--service.token=hunter2"}));
  const std::string text = effective_configuration();
  EXPECT_THAT(text, Not(HasSubstr(kSecret)));
  EXPECT_THAT(text, HasSubstr("\n# api_key: a secret, given but not written here  # command line\n"));
  EXPECT_THAT(text, HasSubstr("\n  # token: a secret, given but not written here"));
  set_flag("api_key", std::string("hunter2hunter2"));
  EXPECT_THAT(effective_configuration(), Not(HasSubstr(kSecret)));

  // It is read as any other, where the secret has to be given again.
  const TemporaryFile yaml(text);
  ScopedConfiguration again;
  ASSERT_FALSE(configured_with({"--config=" + yaml.path()}));
  EXPECT_EQ(flag("api_key"), "");
  EXPECT_EQ(flag("service.token"), "");
}

TEST(SecretFlags, NoWordOfOneThatWasNotGiven) {
  ScopedConfiguration scope;
  ASSERT_FALSE(configured_with({}));
  EXPECT_THAT(effective_configuration(), Not(HasSubstr("api_key")));
}

TEST(SecretFlags, AreNotInTheHelp) {
  ScopedConfiguration scope;
  ::setenv("COLUMNS", "200", 1);
  const std::string help =
      configured_with({"--api_key=hunter2", "--service_url=https://me:hunter2@host/", "--help"}).value();
  ::unsetenv("COLUMNS");
  EXPECT_THAT(help, Not(HasSubstr(kSecret)));
  EXPECT_THAT(help, AllOf(HasSubstr("--api_key=<text>"), HasSubstr("Here: *** (command line)"),
                          HasSubstr("Here: https://***@host/ (command line)")));
}

TEST(SecretFlags, AreNotInErrorsOfTheCommandLine) {
  ::unsetenv("MOX_NOT_SET");
  const std::vector<std::string> mistakes[] = {
      {"--api_kay=hunter2"},  // a name that is mistyped
      {"-api_key=hunter2"},
      {"--no-api_key=hunter2"},
      {"api_key=hunter2"},
      {"--api_key=correct", "hunter2"},  // a text that the shell has cut
      {"--api_key=correct", "-hunter2"},
      {"--api_key=correct", "--hunter2"},
      {"--api_key=correct", "-xhunter2=1"},
      {"--api_key", "correct", "--hunter2"},
      {"--api_key=correct", "-", "horse", "--hunter2"},
      {"--batch_size=1", "--api_key=correct", "--no-hunter2"},
      {"--service_url=https://me:correct", "hunter2@host/"},
      {"--service_url=https://me:correct", "-hunter2@host/"},
      {"--service_url=https://me:correct", "--hunter2@host/"},
      {"--service_url=https://me:correct", "hunter2", "battery@host/"},
      {"--service_url=https://h.org/a?token=correct", "hunter2"},
      {"https://me@host/a?token=hunter2"},
      {"me@host/?X-Amz-Signature=hunter2&a=1"},
      {"https://me:hunter2@host/"},
      {"--api_key=hunter2${"},
      {"--api_key=hunter2${MOX_NOT_SET}"},
      {"--api_key=~hunter2"},
      {"--api_key=$hunter2"},
      {"--api_key=$hunter2/x"},
      {"--api_key=a${hunter2}"},
      {"--service_url=http://me:a${hunter2}@host/"},
      {"--service_url=http://me:hunter2@host/${MOX_NOT_SET}"},
      {"--batch_size=http://me:hunter2@host"},  // the value of another flag
      {"--run_mode=me:hunter2@host"},
      {"--api_key=hunter2", "--batch_size=0"},
  };
  for (const auto& arguments : mistakes) {
    const std::string error = refused(arguments);
    EXPECT_THAT(error, AllOf(HasSubstr("command line: "), Not(HasSubstr(kEndOfSecret)))) << arguments[0];
  }
}

TEST(SecretFlags, AreNotInErrorsOfAFile) {
  for (const std::string content : {"api_key: [hunter2]\n",
                                    "api_key: {a: hunter2}\n",
                                    "api_kay: hunter2\n",
                                    "api_key: hunter2\napi_key: hunter2\n",
                                    "api_key hunter2\n",
                                    "api_key: \"hunter2\n",
                                    "service: hunter2\n",
                                    "api_key:hunter2:\n",
                                    "batch_size: 3\napi_key:hunter2: 1\n",
                                    "service:\n  token:hunter2: 1\n",
                                    "{api_key:hunter2}\n",
                                    "{api_key hunter2}\n",
                                    "{api_key=hunter2}\n",
                                    "? api_key hunter2\n",
                                    "'api_key: hunter2': 1\n",
                                    "batch_size: {api_key:hunter2: 1}\n",
                                    "api_key: *hunter2\n",
                                    "api_key: !hunter2\n",
                                    "api_key: !!hunter2 x\n",
                                    "api_key: !<hunter2> x\n",
                                    "api_key: &hunter2\n",
                                    "api_key: @hunter2\n",
                                    "api_key: `hunter2\n",
                                    "api_key: %hunter2\n",
                                    "api_key: |hunter2\n",
                                    "api_key: >hunter2\n",
                                    "api_key: \"\\hunter2\"\n",
                                    "api_key: [hunter2\n",
                                    "api_key: !hunter2! x\n",
                                    "api_key: !h!hunter2 x\n",
                                    "service_url: *hunter2\n",
                                    "mirrors: [{hunter2: 1}]\n"}) {
    const TemporaryFile yaml(content);
    EXPECT_THAT(refused({"--config=" + yaml.path()}), AllOf(HasSubstr(yaml.path()), Not(HasSubstr(kSecret))))
        << content;
  }
}

TEST(SecretFlags, AreNotInErrorsOfTheProgram) {
  ScopedConfiguration scope;
  ASSERT_FALSE(configured_with({"--api_key=hunter2", std::string("--service_url=") + kAddress}));
  const std::string errors[] = {
      message_of<InvalidArgument>([] { get_flag<int>("api_key"); }),
      message_of<InvalidArgument>([] { get_flag<int>("service_url"); }),
      message_of<InvalidArgument>([] { set_flag("batch_size", std::string(kAddress)); }),
      message_of<InvalidArgument>([] { set_flag("api_key", std::vector<std::string>{kSecret}); }),
      message_of<InvalidArgument>([] { resolve<int64_t>("api_key", std::nullopt); }),
  };
  for (const std::string& error : errors) EXPECT_THAT(error, AllOf(Not(""), Not(HasSubstr(kSecret))));
}

TEST(SecretFlags, AreDefinedAsOthersAre) {
  ScopedConfiguration scope;
  define_secret_flag("api_key", "The key.");
  EXPECT_THAT(message_of<InvalidArgument>([] { define_secret_flag("api_key", "The key."); }),
              HasSubstr("already defined at"));
  EXPECT_THROW(define_secret_flag("batch_size", "The key."), InvalidArgument);
}

TEST(Addresses, AreWrittenWithoutWhoAsks) {
  ScopedConfiguration scope;
  ASSERT_FALSE(
      configured_with({std::string("--service_url=") + kAddress, "--file.endpoint=http://key@store:9000",
                       "--mirrors=me:hunter2@a,http://b/,ftp://me:hun/ter2@c/d"}));
  EXPECT_EQ(flag("service_url"), kAddress) << "the program has all of it";
  const std::string text = effective_configuration();
  EXPECT_THAT(text, HasSubstr("service_url: \"https://***@example.org/data\""));
  EXPECT_THAT(text, HasSubstr("endpoint: \"http://***@store:9000\""));
  EXPECT_THAT(text, HasSubstr("mirrors: [\"***@a\", \"http://b/\", \"ftp://***@c/d\"]"));

  // What is left of them names nobody, and no store would say so.
  const TemporaryFile yaml(text);
  EXPECT_THAT(refused({"--config=" + yaml.path()}),
              AllOf(HasSubstr("left out as it was written down; give the whole address"),
                    HasSubstr("service_url is 'https://***@example.org/data'")));
  EXPECT_THAT(refused({"--service_url=https://host/?v=1&token=***"}), HasSubstr("give the whole address"));
  EXPECT_THAT(refused({"--mirrors=a,***@b"}), HasSubstr("mirrors is '***@b'"));
}

TEST(Addresses, ThatNameNobodyStayAsTheyAre) {
  for (const std::string text :
       {"http://host:9000/photographs", "s3://bucket/a@b:c", "/data/a:b@c", "me@host:folder", "a@b", ":@x",
        "file:///a@b/c:d@e", "2:0.5,5:0.05", "https://[::1]:9000/a", "***", "a***@b"}) {
    ScopedConfiguration scope;
    ASSERT_FALSE(configured_with({"--service_url=" + text}));
    EXPECT_THAT(effective_configuration(), HasSubstr("service_url: \"" + text + "\"")) << text;
  }
}

// Each of several addresses, whatever stands between them.
TEST(Addresses, AreMaskedWhereverTheyStandInAText) {
  const std::pair<std::string, std::string> cases[] = {
      {"http://a:b@c,http://d:e@f/g", "http://***@c,http://***@f/g"},
      {"http://a:b@c http://d:e@f/g", "http://***@c http://***@f/g"},
      {"proxy=http://a:b@c:80/", "proxy=http://***@c:80/"},
      {"a:b@c,http://d:80/e", "***@c,http://d:80/e"},
      {"http://a/b?token=c&d=e", "http://a/b?token=***&d=e"},
      {"http://a:b@c@d/", "http://***@d/"},
      {"http://a:b,c@d/", "http://***@d/"},
      {"http://a:b?c@d/", "http://***@d/"},
      {"http://a@[::1]:80/", "http://***@[::1]:80/"},
  };
  for (const auto& [text, expected] : cases) {
    ScopedConfiguration scope;
    ASSERT_FALSE(configured_with({"--service_url=" + text}));
    EXPECT_THAT(effective_configuration(), HasSubstr("service_url: \"" + expected + "\"")) << text;
  }
}

}  // namespace
}  // namespace mox
