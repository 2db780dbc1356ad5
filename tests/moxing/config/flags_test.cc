// The command line, a program's own flags, and the start of a program.
#include "moxing/config/flags.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <thread>

#include "moxing/config/init.h"
#include "moxing/file/store_client.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "tests/moxing/config/config_testing.h"

namespace mox {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

TEST(Flags, TakeTheirTypeFromTheDefault) {
  ScopedConfiguration scope;
  define_flag("hidden_units", 128, "Units.");
  define_flag("rate", 0.5f, "Rate.");
  define_flag("bias", true, "Bias.");
  define_flag("label", "none", "Label.");
  define_flag("sizes", std::vector<int>{1, 2}, "Sizes.");
  define_flag("rates", std::vector<double>{}, "Rates.");
  define_flag("words", std::vector<std::string>{"a"}, "Words.");
  ASSERT_FALSE(
      configure({.program = "p",
                 .arguments = {"--hidden_units=256", "--rate", "-1e-3", "--no-bias", "--label=x=y --z",
                               "--sizes=[3, -4]", "--rates=0.5,1", "--words=b,,c"}}));
  EXPECT_EQ(flag("hidden_units"), "256");
  EXPECT_EQ(get_flag<int>("hidden_units"), 256);
  EXPECT_EQ(get_flag<size_t>("hidden_units"), 256u);
  EXPECT_EQ(get_flag<double>("hidden_units"), 256.0);
  EXPECT_EQ(get_flag<double>("rate"), -1e-3);
  EXPECT_FALSE(get_flag<bool>("bias"));
  EXPECT_EQ(flag("bias"), "false");
  EXPECT_EQ(get_flag<std::string>("label"), "x=y --z");
  EXPECT_EQ(get_flag<std::vector<int64_t>>("sizes"), (std::vector<int64_t>{3, -4}));
  EXPECT_EQ(get_flag<std::vector<double>>("rates"), (std::vector<double>{0.5, 1}));
  EXPECT_EQ(get_flag<std::vector<std::string>>("words"), (std::vector<std::string>{"b", "", "c"}));
  EXPECT_EQ(flag("sizes"), "3,-4");
}

TEST(Flags, WhatIsHeldElsewhereIsToldOfANewValue) {
  const ScopedConfiguration scope({"--log_level=error", "--file.attempts=7", "--file.region=a"});
  set_flag("file.attempts", 3);
  set_flag("file.region", "b");
  EXPECT_EQ(file::store_client()->options().attempts, 3);
  EXPECT_EQ(file::store_client()->options().region, "b");
  reset_flag("file.attempts");
  EXPECT_EQ(file::store_client()->options().attempts, 7);
  const auto printed = [](const char* level) {
    set_flag("log_level", level);
    ::testing::internal::CaptureStderr();
    log_info("a line");
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(printed("info"), HasSubstr("a line"));
  EXPECT_EQ(printed("error"), "");
}

TEST(Flags, ABoolIsGivenInManyWays) {
  const std::pair<const char*, bool> ways[] = {
      {"--auto_batch", true},        {"--no-auto_batch", false},     {"--auto_batch=true", true},
      {"--auto_batch=false", false}, {"--auto_batch=False", false},  {"--auto_batch=0", false},
      {"--auto_batch=on", true},     {"--no-auto_batch=true", false}};
  for (const auto& [way, expected] : ways) {
    const ScopedConfiguration scope(std::vector<std::string>{way});
    EXPECT_EQ(get_flag<bool>("auto_batch"), expected) << way;
  }
}

TEST(Flags, OfAFlagGivenTwiceTheLastCounts) {
  const ScopedConfiguration scope({"--seed=1", "--seed", "2", "--auto_batch", "--no-auto_batch"});
  EXPECT_EQ(get_flag<int64_t>("seed"), 2);
  EXPECT_FALSE(get_flag<bool>("auto_batch"));
}

TEST(Flags, AnEmptyValueIsTheEmptyText) {
  const ScopedConfiguration scope({"--data_url=", "--seed=3"});
  EXPECT_EQ(flag("data_url"), "");
  EXPECT_EQ(option_origin("data_url"), "command line");
  EXPECT_EQ(get_flag<int>("seed"), 3);
}

TEST(Flags, BadCommandLinesAreRefused) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--bach_size=3"},
       "command line: unknown flag '--bach_size'; the nearest known flag is '--batch_size' (--help lists "
       "all)."},
      {{"--seed=1", "--bach_size", "3"},
       "command line: unknown flag '--bach_size'; the nearest known flag is '--batch_size' (--help lists "
       "all)."},
      {{"-seed=1"},
       "command line: unknown flag '-seed'; the nearest known flag is '--seed' (--help lists all)."},
      {{"--no-seed"},
       "command line: unknown flag '--no-seed'; the nearest known flag is '--seed' (--help lists all)."},
      {{"train"},
       "command line: 'train' belongs to no flag; write --flag=value (a bool takes its value after '=' "
       "only)."},
      {{"--auto_batch", "false"},
       "command line: 'false' belongs to no flag; write --flag=value (a bool takes its value after '=' "
       "only)."},
      {{"--seed"}, "command line: --seed needs a value; write --seed=VALUE."},
      {{"--data_url", "--seed=3"}, "command line: --data_url needs a value; write --data_url=VALUE."},
      {{"--seed="}, "command line: seed expects an integer (digits only), got ''."},
      {{"--auto_batch="}, "command line: auto_batch expects true or false, got ''."},
      {{"--auto_batch=maybe"}, "command line: auto_batch expects true or false, got 'maybe'."},
      {{"--no-auto_batch=maybe"}, "command line: auto_batch expects true or false, got 'maybe'."},
      {{"--batch_size=ten"}, "command line: batch_size expects an integer (digits only), got 'ten'."},
      {{"--batch_size", "0"}, "command line: batch_size must be at least 1, got 0."},
      {{"--clip_gradient_norm=inf"}, "command line: clip_gradient_norm expects a finite number, got 'inf'."},
      {{"--run_mode=fly"}, "command line: run_mode must be train, eval or predict, got 'fly'."},
  };
  for (const auto& [arguments, expected] : cases) EXPECT_EQ(refusal(arguments), expected);
}

TEST(Flags, ListsAreRefusedElementByElement) {
  ScopedConfiguration scope;
  define_flag("sizes", std::vector<int64_t>{1}, "Sizes.");
  EXPECT_EQ(message_of<ConfigError>([] { configure({.program = "p", .arguments = {"--sizes=1,two"}}); }),
            "command line: sizes expects an integer (digits only), got 'two'.");
  const TemporaryFile yaml("sizes:\n  - 1\n  - [2]\n");
  EXPECT_THAT(message_of<ConfigError>([&] {
                configure({.program = "p", .arguments = {"--config", yaml.path()}});
              }),
              HasSubstr(":3: sizes expects an integer (digits only), got a list"));
  const TemporaryFile scalar("sizes: 1\n");
  EXPECT_THAT(message_of<ConfigError>([&] {
                configure({.program = "p", .arguments = {"--config", scalar.path()}});
              }),
              HasSubstr(":1: sizes expects a list of integers, got '1'."));
}

TEST(Flags, ARefusedConfigurationLeavesNothingBehind) {
  ScopedConfiguration scope;
  EXPECT_THROW(configure({.program = "p", .arguments = {"--seed=5", "--threads=-1"}}), ConfigError);
  EXPECT_THROW(flag("seed"), FailedPrecondition);
  ASSERT_FALSE(configure({.program = "p", .arguments = {}}));
  EXPECT_EQ(flag("seed"), "1");
}

TEST(Flags, AreNotReadBeforeInitNorDefinedAfter) {
  ScopedConfiguration scope;
  EXPECT_EQ(message_of<FailedPrecondition>([] { flag("seed"); }),
            "flag was called before mox::init: call mox::init(argc, argv) first in main, after the "
            "define_flag calls.");
  EXPECT_THROW(get_flag<int>("seed"), FailedPrecondition);
  EXPECT_THROW(set_flag("seed", 1), FailedPrecondition);
  EXPECT_THROW(resolve<int64_t>("seed", std::nullopt), FailedPrecondition);
  EXPECT_THROW(effective_configuration(), FailedPrecondition);
  ASSERT_FALSE(configure({.program = "p", .arguments = {}}));
  EXPECT_THAT(message_of<FailedPrecondition>([] { define_flag("late", 1, "Late."); }),
              HasSubstr("the flag 'late' is defined after mox::init"));
  EXPECT_THAT(message_of<FailedPrecondition>([] { configure({.program = "p", .arguments = {}}); }),
              HasSubstr("called twice"));
}

TEST(Flags, BadDefinitionsAreRefused) {
  ScopedConfiguration scope;
  for (const char* name : {"", "Units", "a-b", "1a", ".a", "a.", "a..b", "a b", "help", "version"}) {
    EXPECT_THROW(define_flag(name, 1, "Help."), InvalidArgument) << name;
  }
  define_flag("units", 1, "Help.");
  EXPECT_THAT(
      message_of<InvalidArgument>([] { define_flag("units", 2, "Help."); }),
      MatchesRegex("define_flag at .*flags_test.cc:[0-9]+: the flag 'units' of this program is already "
                   "defined at .*flags_test.cc:[0-9]+; choose another name."));
  EXPECT_THAT(message_of<InvalidArgument>([] { define_flag("batch_size", 2, "Help."); }),
              HasSubstr("already defined by moxing"));
  EXPECT_THAT(message_of<InvalidArgument>([] { define_flag("optimizer", 2, "Help."); }),
              HasSubstr("a value and a section"));
  EXPECT_THAT(message_of<InvalidArgument>([] { define_flag("seed.a.b", 2, "Help."); }),
              HasSubstr("a value and a section"));
}

// What a run resolves is the option, whatever the program's flag of that name holds.
TEST(Flags, SomeOptionsGiveTheirNameWay) {
  {
    const ScopedConfiguration scope;
    define_flag("predictions", "own.csv", "Where the program writes.");
    define_flag("freeze", true, "Whether to freeze.");
    configure({.program = "p", .arguments = {"--predictions=mine.csv", "--moxing.predictions=ours.csv"}});
    EXPECT_EQ(flag("predictions"), "mine.csv");
    EXPECT_EQ(flag("moxing.predictions"), "ours.csv");
    EXPECT_EQ(resolve<std::string>("predictions", std::nullopt), "ours.csv");
    EXPECT_THAT(effective_configuration(), HasSubstr("\npredictions: \"mine.csv\""));
    EXPECT_THAT(effective_configuration(), HasSubstr("moxing:\n  predictions: \"ours.csv\""));
    EXPECT_TRUE(get_flag<bool>("freeze"));
    EXPECT_TRUE((resolve<std::vector<std::string>>("freeze", std::nullopt)).empty());
    EXPECT_EQ((resolve<std::vector<std::string>>("freeze", std::vector<std::string>{"stem"})),
              std::vector<std::string>{"stem"});
  }

  {
    const ScopedConfiguration scope;
    define_flag("freeze", true, "Whether to freeze.");
    EXPECT_THAT(message_of<InvalidArgument>([] { define_flag("freeze", true, "Again."); }),
                HasSubstr("is already defined at"));
  }

  {
    const ScopedConfiguration scope;
    define_flag("moxing", "x", "A section of that name.");
    EXPECT_THAT(message_of<InvalidArgument>([] { define_flag("freeze", true, "Whether to freeze."); }),
                HasSubstr("a value and a section"));
  }
}

TEST(Flags, ReadsCheckNameTypeAndRange) {
  const ScopedConfiguration scope({"--seed=300"});
  EXPECT_EQ(message_of<NotFound>([] { flag("sed"); }),
            "there is no flag 'sed'; the nearest known flag is 'seed'. Flags of your own are declared with "
            "mox::define_flag before mox::init.");
  EXPECT_THAT(message_of<InvalidArgument>([] { get_flag<std::string>("seed"); }),
              HasSubstr("'seed' is of type integer (its value is '300') and was read as text"));
  EXPECT_THAT(message_of<InvalidArgument>([] { get_flag<int8_t>("seed"); }), HasSubstr("range -128 to 127"));
  EXPECT_THROW(get_flag<int>("clip_gradient_norm"), InvalidArgument);
}

TEST(Flags, SetFlagWinsAndIsChecked) {
  const ScopedConfiguration scope({"--seed=3"});
  set_flag("seed", 4);
  set_flag("clip_gradient_norm", 2);
  EXPECT_EQ(resolve<int64_t>("seed", 5), 4);
  EXPECT_EQ(option_origin("seed"), "set_flag");
  EXPECT_EQ(get_flag<double>("clip_gradient_norm"), 2.0);
  EXPECT_THAT(
      message_of<InvalidArgument>([] { set_flag("seed", "many"); }),
      HasSubstr("'seed' is an option of type integer; set_flag gives it a value of type text ('many')"));
  EXPECT_EQ(message_of<ConfigError>([] { set_flag("batch_size", 0); }),
            "set_flag: batch_size must be at least 1, got 0.");
  EXPECT_EQ(flag("seed"), "4");
  reset_flag("seed");
  reset_flag("batch_size");
  EXPECT_EQ(resolve<int64_t>("seed", 5), 3);
  EXPECT_EQ(option_origin("seed"), "command line");
  EXPECT_THROW(reset_flag("sed"), NotFound);
}

TEST(Flags, ScopesHideEachOther) {
  const ScopedConfiguration outer({"--seed=1"});
  {
    const ScopedConfiguration inner({"--seed=2"});
    EXPECT_EQ(flag("seed"), "2");
  }
  EXPECT_EQ(flag("seed"), "1");
  EXPECT_NE(refusal({"--seed=x"}), "");
  EXPECT_EQ(flag("seed"), "1");
}

TEST(Flags, AreSafeFromManyThreads) {
  const ScopedConfiguration scope(std::vector<std::string>{});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        set_flag("seed", t);
        const int seed = get_flag<int>("seed");
        EXPECT_TRUE(seed >= 0 && seed < 4);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Flags, HelpListsEveryOptionByGroup) {
  ScopedConfiguration scope;
  ::setenv("COLUMNS", "100", 1);
  define_flag("hidden_units", 128, "Units of the hidden layer.");
  const std::string help = configure({.program = "lenet", .arguments = {"--seed=1", "--help"}}).value();
  EXPECT_THAT(help, HasSubstr("Usage: lenet [--flag=value ...]\n"));
  EXPECT_THAT(
      help,
      HasSubstr(
          "\nData\n  --batch_size=<integer>\n      Samples in a batch of each device. Accepted: at least 1. "
          "Default: 32.\n"));
  EXPECT_THAT(help, HasSubstr("\n  --auto_batch, --no-auto_batch\n"));
  EXPECT_THAT(
      help, HasSubstr("\nFlags of this program\n  --hidden_units=<integer>\n      Units of the hidden layer. "
                      "Default: 128.\n"));
  for (const Option& option : built_in_options()) EXPECT_THAT(help, HasSubstr("  --" + option.name));
  for (size_t start = 0; start < help.size(); start = help.find('\n', start) + 1) {
    EXPECT_LE(help.find('\n', start) - start, 100u) << help.substr(start, 120);
  }
  ::unsetenv("COLUMNS");
  EXPECT_THROW(flag("seed"), FailedPrecondition);
  EXPECT_THAT(configure({.program = "lenet", .arguments = {"--version"}}).value(),
              MatchesRegex("lenet \\(moxing [0-9]+\\.[0-9]+\\.[0-9]+\\)\n"));
}

// What the program says counts, and shows; what the command line says shows beside it.
TEST(Flags, HelpShowsTheDefaultsOfTheProgram) {
  ScopedConfiguration scope;
  const ProgramDefaults defaults = {
      {"batch_size", 128}, {"inter_mode", "eval"}, {"optimizer.learning_rate", "2:0.5,5:0.05"}};
  const auto line_of = [](const std::string& help, const std::string& flag) {
    const size_t begin = help.find("--" + flag + "=");
    std::string entry = help.substr(begin, help.find("\n  --", begin) - begin);
    for (size_t at; (at = entry.find("\n      ")) != std::string::npos;) entry.replace(at, 7, " ");
    return entry;
  };
  const std::string help =
      configure({.program = "lenet", .arguments = {"--batch_size=7", "--help"}, .defaults = defaults})
          .value();
  EXPECT_THAT(line_of(help, "batch_size"), HasSubstr("Default: 128. Here: 7 (command line)."));
  EXPECT_THAT(line_of(help, "inter_mode"), HasSubstr("Default: eval."));
  EXPECT_THAT(line_of(help, "optimizer.learning_rate"), HasSubstr("Default: 2:0.5,5:0.05."));
  EXPECT_THAT(configure({.program = "lenet", .arguments = {"--batch_size=0", "--help"}}).value(),
              AllOf(HasSubstr("Default: 32."), HasSubstr("Not shown above: command line: ")));
  // A terminal would obey what stands in a value.
  EXPECT_THAT(configure({.program = "lenet", .arguments = {"--batch_size=\x1b[2J", "--help"}}).value(),
              AllOf(HasSubstr("Not shown above"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(configure({.program = "lenet", .arguments = {"--train_url=a\x1b[2J\nb", "--help"}}).value(),
              AllOf(HasSubstr("a\\x1b[2J\\nb"), Not(HasSubstr("\x1b"))));

  configure({.program = "lenet", .arguments = {"--seed=1"}, .defaults = defaults});
  EXPECT_EQ(resolve<int64_t>("batch_size", std::nullopt), 128);
  EXPECT_EQ(option_origin("batch_size"), "mox::init");
  EXPECT_EQ(resolve<int64_t>("batch_size", 64), 64) << "the run spec is nearer to the run";
}

TEST(Flags, DefaultsOfTheProgramAreChecked) {
  const auto refused = [](const ProgramDefaults& defaults) {
    ScopedConfiguration scope;
    define_flag("hidden_units", 128, "Units of the hidden layer.");
    return message_of<Error>([&] { configure({.program = "lenet", .arguments = {}, .defaults = defaults}); });
  };
  EXPECT_THAT(refused({{"batch_sise", 3}}), HasSubstr("'batch_size'"));
  EXPECT_THAT(refused({{"batch_size", "many"}}), HasSubstr("mox::init gives it a value of type text"));
  EXPECT_THAT(refused({{"batch_size", 0}}), HasSubstr("mox::init"));
  EXPECT_THAT(refused({{"batch_size", 1}, {"batch_size", 2}}), HasSubstr("two defaults"));
  EXPECT_THAT(refused({{"hidden_units", 3}}), HasSubstr("define_flag"));
  EXPECT_THAT(refused({{"config", "x.yaml"}}), HasSubstr("command line only"));
}

TEST(InitDeathTest, EndsTheProcessWithTheDocumentedStatus) {
  const char* refused[] = {"/usr/bin/lenet", "--bach_size=3", nullptr};
  EXPECT_EXIT(
      init(2, refused), ::testing::ExitedWithCode(2),
      "^error: command line: unknown flag '--bach_size'; the nearest known flag is '--batch_size' .*\n$");
  const char* help[] = {"lenet", "--help", nullptr};
  EXPECT_EXIT(init(2, help), ::testing::ExitedWithCode(0), "^$");
  const char* version[] = {"lenet", "--version", nullptr};
  EXPECT_EXIT(init(2, version), ::testing::ExitedWithCode(0), "^$");
}

TEST(Init, ReadsTheArgumentsOfMain) {
  ScopedConfiguration scope;
  const char* arguments[] = {"lenet", "--seed=9", nullptr};
  init(2, arguments);
  EXPECT_EQ(flag("seed"), "9");
}

}  // namespace
}  // namespace mox
