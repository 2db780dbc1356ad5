// Spellings of YAML files: encodings, merge keys, tabs; and what stands for a home directory or a variable.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "moxing/config/flags.h"
#include "moxing/config/options.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/config/config_testing.h"

namespace mox {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// `text`, of ASCII letters and one that needs a pair of units, as UTF-16.
std::string utf16(const std::u16string& text, bool big_endian, bool mark) {
  std::string bytes = mark ? (big_endian ? "\xfe\xff" : "\xff\xfe") : "";
  for (const char16_t unit : text) {
    const char low = static_cast<char>(unit & 0xff), high = static_cast<char>(unit >> 8);
    bytes += big_endian ? high : low;
    bytes += big_endian ? low : high;
  }
  return bytes;
}

std::string text_of(const char* option) { return resolve<std::string>(option, std::nullopt); }

// An environment variable, as it was before when the object goes.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) before_ = old;
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Environment() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Yaml, Utf16IsReadInBothOrdersWithAndWithoutAMark) {
  for (const bool big_endian : {false, true})
    for (const bool mark : {false, true}) {
      const TemporaryFile yaml(
          utf16(u"batch_size: 7\r\ndata_url: \"d\u00e4ta/\U0001F40E\"", big_endian, mark));
      const ScopedConfiguration scope({"--config=" + yaml.path()});
      EXPECT_EQ(resolve<int64_t>("batch_size", std::nullopt), 7);
      EXPECT_EQ(text_of("data_url"), "d\xc3\xa4ta/\xf0\x9f\x90\x8e");
      EXPECT_EQ(option_origin("data_url"), yaml.path() + ":2");
    }
}

TEST(Yaml, AnEncodingThatIsNotReadIsNamed) {
  const TemporaryFile utf32(std::string("\xff\xfe\0\0s\0\0\0", 8));
  EXPECT_EQ(refusal({"--config=" + utf32.path()}),
            utf32.path() + ": the file is encoded as UTF-32; save it as UTF-8.");
  const TemporaryFile unmarked(std::string("\0\0\0s\0\0\0e", 8));
  EXPECT_THAT(refusal({"--config=" + unmarked.path()}), HasSubstr("is encoded as UTF-32"));
  const TemporaryFile half(utf16(u"seed: 1", false, true) + "\n");
  EXPECT_EQ(refusal({"--config=" + half.path()}),
            half.path() + ": the file begins as UTF-16 but is none at byte 16; save it as UTF-8.");
  const TemporaryFile alone(utf16(u"seed: \xd83d", false, true));
  EXPECT_THAT(refusal({"--config=" + alone.path()}), HasSubstr("is none at byte 14"));
  const TemporaryFile marked("\xef\xbb\xbfseed: 3\n");
  const ScopedConfiguration scope({"--config=" + marked.path()});
  EXPECT_EQ(resolve<int64_t>("seed", std::nullopt), 3);
}

TEST(Yaml, MergeKeysBringInWhatASectionDoesNotGiveItself) {
  const TemporaryFile yaml(
      "x-usual: &usual\n"
      "  batch_size: 64\n"
      "  seed: 5\n"
      "x-rates:\n"
      "  fast: &fast {name: momentum, momentum: 0.9}\n"
      "  slow: &slow {name: adam, learning_rate: 0.001}\n"
      "<<: *usual\n"
      "seed: 6\n"
      "optimizer:\n"
      "  <<: [*slow, *fast]\n"
      "  learning_rate: 0.1\n");
  const ScopedConfiguration scope({"--config=" + yaml.path()});
  EXPECT_EQ(resolve<int64_t>("batch_size", std::nullopt), 64);
  EXPECT_EQ(option_origin("batch_size"), yaml.path() + ":2");
  EXPECT_EQ(resolve<int64_t>("seed", std::nullopt), 6);
  EXPECT_EQ(flag("optimizer.name"), "adam");
  EXPECT_EQ(flag("optimizer.momentum"), "0.9");
  EXPECT_EQ(flag("optimizer.learning_rate"), "0.1");
}

TEST(Yaml, AMergedSectionMayMergeAnotherOneAndValuesMayBeAliases) {
  const TemporaryFile yaml(
      "x-a: &a {name: sgd, weight_decay: 1}\n"
      "x-b: &b {<<: *a, name: adagrad}\n"
      "x-values: {steps: &steps 12}\n"
      "optimizer: {<<: *b}\n"
      "max_number_of_steps: *steps\n");
  const ScopedConfiguration scope({"--config=" + yaml.path()});
  EXPECT_EQ(flag("optimizer.name"), "adagrad");
  EXPECT_EQ(flag("optimizer.weight_decay"), "1");
  EXPECT_EQ(flag("max_number_of_steps"), "12");
}

TEST(Yaml, WhatASectionGivesItselfWinsHoweverItsKeysAreSpelt) {
  for (const char* content : {"x-a: &a {optimizer.name: adam, seed: 3}\n<<: *a\noptimizer: {name: sgd}\n",
                              "x-a: &a {optimizer: {name: adam}, seed: 3}\n<<: *a\noptimizer.name: sgd\n",
                              "x-b: &b {optimizer.name: sgd}\nx-a: &a {optimizer: {name: adam}, seed: 3}\n"
                              "<<: [*b, *a]\n"}) {
    const TemporaryFile yaml(content);
    const ScopedConfiguration scope({"--config=" + yaml.path()});
    EXPECT_EQ(flag("optimizer.name"), "sgd") << content;
    EXPECT_EQ(flag("seed"), "3") << content;
  }
  for (const char* content : {"x-a: &a {optimizer.name: adam, optimizer: {name: sgd}}\n<<: *a\n",
                              "x-a: &a {name: adam}\noptimizer: {<<: *a}\noptimizer.name: sgd\n",
                              "optimizer.name: adam\noptimizer: {name: sgd}\n"}) {
    const TemporaryFile yaml(content);
    EXPECT_THAT(refusal({"--config=" + yaml.path()}), HasSubstr("'optimizer.name' is already given at"))
        << content;
  }
}

TEST(Yaml, MergeKeysThatCannotBeMeantAreRefused) {
  const auto refused = [](const std::string& content) {
    const TemporaryFile yaml(content);
    std::string message = refusal({"--config=" + yaml.path()});
    return message.substr(yaml.path().size());
  };
  EXPECT_EQ(
      refused("<<: 3\n"),
      ":1: '<<' takes a section of keys, or a list of them, that '&NAME' stands before and '*NAME' brings "
      "in.");
  EXPECT_EQ(refused("x-a: &a {seed: 1, <<: *a}\n<<: *a\n"),
            ":1: '<<' brings in more than 1000 sections; one of them holds itself.");
  EXPECT_EQ(refused("seed: 1\nx-usual: &usual {batch_size: 64}\n"),
            ":2: no '<<: *NAME' brings in this section (one whose name begins with 'x-' counts only where it "
            "does).");
  EXPECT_THAT(refused("x-a: &a {bach_size: 1}\n<<: *a\n"), HasSubstr(":1: unknown key 'bach_size'"));
  EXPECT_THAT(refused("x-seed: 1\n"), HasSubstr(":1: unknown key 'x-seed'"));
}

TEST(Yaml, ATagThatWouldBeLostIsRefused) {
  for (const std::string content :
       {"seed: 1\ndata_url: !text\n", "seed: 1\nmax_epochs: !abc 3\n", "seed: 1\ndata_url: !a!b x\n",
        "seed: 1\ndata_url: !!binary aGk=\n", "seed: 1\ndata_url: !!null x\n", "seed: 1\n!key data_url: x\n",
        "seed: 1\noptimizer: !section {name: adam}\n", "seed: 1\noptimizer: !!str {name: adam}\n",
        "seed: 1\noptimizer: {trainable: !list [a]}\n", "seed: 1\nx-a: &a !b {batch_size: 3}\n"}) {
    const TemporaryFile yaml(content);
    EXPECT_EQ(refusal({"--config=" + yaml.path()}),
              yaml.path() +
                  ":2: a word behind '!' is a tag in YAML, and this one has no meaning here; put a "
                  "text that begins with '!' in quotes.")
        << content;
  }
  const TemporaryFile yaml(
      "!!map\n!!str seed: !!int 3\nbatch_size: !<tag:yaml.org,2002:int> 4\noptimizer: !!map {name: !!str "
      "adam}\n"
      "data_url: ! 5\ntrain_url: '!text'\noptimizer.learning_rate: !!float 0.5\n");
  const ScopedConfiguration scope({"--config=" + yaml.path()});
  EXPECT_EQ(flag("seed") + " " + flag("batch_size") + " " + flag("optimizer.name") + " " + flag("data_url") +
                " " + flag("train_url") + " " + flag("optimizer.learning_rate"),
            "3 4 adam 5 !text 0.5");
}

TEST(Yaml, AKeyWithoutASpaceBehindItsColonIsNamed) {
  const auto refused = [](const std::string& content) {
    const TemporaryFile yaml(content);
    return refusal({"--config=" + yaml.path()}).substr(yaml.path().size());
  };
  EXPECT_EQ(
      refused("seed: 1\nbatch_size:64: 1\n"),
      ":2: unknown key 'batch_size...', whose rest is not shown; write 'batch_size: VALUE', with a space "
      "behind the colon (--help lists all).");
  EXPECT_THAT(refused("{bach_size:64}\n"),
              HasSubstr("unknown key 'bach_size...', whose rest is not shown; the nearest known key is "
                        "'batch_size'"));
  EXPECT_THAT(refused("gr\u00f6\u00dfe: 3\n"), HasSubstr("unknown key 'gr\u00f6\u00dfe'; "));
}

TEST(Yaml, ATabIsNamed) {
  for (const char* content :
       {"optimizer:\n\tname: adam\n", "seed: 1\n\tbatch_size: 3\n", "seed: 1\n  \tdata_url: x\n"}) {
    const TemporaryFile yaml(content);
    EXPECT_EQ(refusal({"--config=" + yaml.path()}),
              yaml.path() + ":2: the line is indented with a tab, which YAML does not allow; use spaces.")
        << content;
  }
  const TemporaryFile yaml("seed:\t3\t# three\n");
  const ScopedConfiguration scope({"--config=" + yaml.path()});
  EXPECT_EQ(flag("seed"), "3");
}

TEST(Paths, AHomeDirectoryAndVariablesAreExpanded) {
  const Environment home("HOME", "/home/me"), run("RUN_7", "seven");
  const TemporaryFile yaml("data_url: ~/data/${RUN_7}/x\ntrain_url: $HOME/out\nlog_dir: '${HOME}'\n");
  const ScopedConfiguration scope({"--config=" + yaml.path(), "--checkpoint_path=~/c", "--predictions=~"});
  EXPECT_EQ(flag("data_url"), "/home/me/data/seven/x");
  EXPECT_EQ(flag("train_url"), "/home/me/out");
  EXPECT_EQ(flag("log_dir"), "/home/me");
  EXPECT_EQ(flag("checkpoint_path"), "/home/me/c");
  EXPECT_EQ(flag("predictions"), "/home/me");
  EXPECT_EQ(resolve<std::string>("snapshots.directory", std::string("~/s")), "/home/me/s");
  set_flag("log_dir", "${HOME}/set");
  EXPECT_EQ(flag("log_dir"), "/home/me/set");
}

TEST(Paths, OtherTextsStayAndAreWrittenSoThatTheyAreReadAgain) {
  const Environment home("HOME", "/home/me");
  for (const auto& [written, meant] : {std::pair<std::string, std::string>{"a~/b", "a~/b"},
                                       {"./~/x", "./~/x"},
                                       {"cost$", "cost$"},
                                       {"a$HOME", "a$HOME"},
                                       {"$${HOME}/x", "${HOME}/x"},
                                       {"a/$${b}", "a/${b}"},
                                       {"$$HOME/x", "$HOME/x"},
                                       {"^conv.*$", "^conv.*$"},
                                       {"~", "/home/me"},
                                       {"a$$b", "a$$b"}}) {
    const ScopedConfiguration scope({"--data_url=" + written});
    EXPECT_EQ(flag("data_url"), meant) << written;
    const TemporaryFile again(effective_configuration());
    const ScopedConfiguration second({"--config=" + again.path()});
    EXPECT_EQ(flag("data_url"), meant) << written;
  }
}

TEST(Paths, WhatCannotBeExpandedIsRefused) {
  const Environment none("NOT_SET", nullptr), empty("EMPTY", "");
  EXPECT_EQ(
      refusal({"--log_dir=${NOT_SET}/x"}),
      "command line: log_dir is '${NOT_SET}/x', but the environment variable NOT_SET is not set; set it, or "
      "write the path out.");
  EXPECT_THAT(refusal({"--log_dir=$EMPTY/x"}), HasSubstr("the environment variable EMPTY is empty"));
  EXPECT_THAT(refusal({"--log_dir=~bob/x"}), HasSubstr("only ~ itself is known"));
  EXPECT_THAT(refusal({"--log_dir=a/${HOME"}), HasSubstr("must be followed by the name of an environment"));
  EXPECT_THAT(refusal({"--log_dir=a/${}"}), HasSubstr("for the text itself write $${"));
  const Environment homeless("HOME", nullptr);
  EXPECT_THAT(refusal({"--config=~/run.yaml"}), HasSubstr("the environment variable HOME is not set"));
}

TEST(Paths, NoDirectoryOfSuchANameIsMade) {
  for (const char* path : {"~", "~/out", "${HOME}/out", "a/${HOME}", "$HOME/out"}) {
    EXPECT_THAT(message_of<InvalidArgument>([&] { make_directories(path); }),
                HasSubstr("write the directory out"));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

}  // namespace
}  // namespace mox
