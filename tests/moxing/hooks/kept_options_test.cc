// Options go with the checkpoint: whatever uses it takes the same.
#include "moxing/hooks/kept_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "moxing/config/flag_text.h"
#include "moxing/moxing.h"
#include "tests/moxing/small_run.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Texts = std::vector<std::string>;

class KeptOptions : public testing::Test {
 protected:
  // A program with these arguments, which asks for the options and then does `then`.
  template <typename Do>
  void as_program(const std::vector<std::string>& arguments, const Do& then) const {
    const ScopedConfiguration configuration;
    define_flag("units", std::vector<int64_t>{4, 2}, "Of layers.");
    define_flag("shape", "round", "Of the model.");
    define_flag("size", 0, "Of images.");
    define_flag("names", std::vector<std::string>{}, "Of columns.");
    define_flag("service", "", "Where the words come from.");
    std::vector<std::string> all{"--threads=1", "--num_devices=1", "--log_level=error"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    configure({.program = "test", .arguments = all});
    then();
  }
  void train(const std::vector<std::string>& arguments, int64_t steps) const {
    as_program(arguments, [&] {
      use_kept_options(ModeKeys::TRAIN, log_dir_, "", options_);
      RunSpec spec = one_weight_run(log_dir_, steps);
      spec.hooks = {kept_options_hook(options_)};
      run_or_throw(spec);
    });
  }
  std::string used(const std::vector<std::string>& arguments, ModeKeys mode, const std::string& path) const {
    std::string text;
    as_program(arguments, [&] {
      use_kept_options(mode, log_dir_, path, options_);
      text = flag("units") + " " + flag("shape") + " " + flag("size");
    });
    return text;
  }

  // What a run that uses the checkpoint has as the values of an option.
  template <typename T>
  T value(const std::string& name, const std::vector<std::string>& arguments = {}) const {
    T value;
    as_program(arguments, [&] {
      use_kept_options(ModeKeys::EVAL, log_dir_, "", options_);
      value = get_flag<T>(name);
    });
    return value;
  }

  const std::vector<KeptOption> options_{{"units"}, {"shape"}, {"size", true}, {"names"}, {"service"}};
  TemporaryDirectory directory_;
  const std::string log_dir_ = directory_.file("run");
};

TEST_F(KeptOptions, CountWhereNobodyGivesOthers) {
  EXPECT_EQ(used({}, ModeKeys::TRAIN, ""), "4,2 round 0");
  EXPECT_EQ(used({}, ModeKeys::EVAL, ""), "4,2 round 0");  // mox::run says what is missing
  train({"--units=[8]", "--shape=flat, and wide", "--size=32"}, 2);
  for (const ModeKeys mode : {ModeKeys::TRAIN, ModeKeys::EVAL, ModeKeys::PREDICT}) {
    EXPECT_EQ(used({}, mode, ""), "8 flat, and wide 32");
    EXPECT_EQ(used({"--units=8", "--size=64"}, mode, ""), "8 flat, and wide 64");
    EXPECT_THAT(message_of<ConfigError>([&] { used({"--shape=round"}, mode, ""); }),
                AllOf(HasSubstr("shape is 'round' (command line)"), HasSubstr("'flat, and wide'"),
                      HasSubstr(log_dir_), HasSubstr("Leave the option out")));
  }
  // They go with the checkpoint, and on with the run.
  std::filesystem::copy(log_dir_ + "/checkpoint-2", directory_.file("elsewhere"));
  EXPECT_EQ(used({}, ModeKeys::EVAL, directory_.file("elsewhere")), "8 flat, and wide 32");
  train({}, 4);
  EXPECT_EQ(used({}, ModeKeys::EVAL, log_dir_), "8 flat, and wide 32");
  // A training from its variables is one of its own.
  as_program({}, [&] {
    EXPECT_TRUE(use_kept_options(ModeKeys::TRAIN, directory_.file("new"), log_dir_, options_).empty());
  });
}

// What no option says of a run may stand beside them.
TEST_F(KeptOptions, ComeWithTheFactsOfTheProgram) {
  as_program({}, [&] {
    RunSpec spec = one_weight_run(log_dir_, 2);
    spec.hooks = {kept_options_hook(options_, {{"edition", "2"}})};
    run_or_throw(spec);
    const auto kept = use_kept_options(ModeKeys::EVAL, log_dir_, "", options_);
    EXPECT_EQ(kept.at("edition"), "2");
    EXPECT_EQ(kept.at("shape"), "round");
    EXPECT_EQ(kept_options_of(log_dir_), kept);
    EXPECT_TRUE(kept_options_of(directory_.file("new")).empty());
  });
  train({}, 4);  // by a program that has none
  as_program({}, [&] {
    EXPECT_FALSE(use_kept_options(ModeKeys::EVAL, log_dir_, "", options_).contains("edition"));
  });
}

// On a disk there is nothing by that name.
TEST_F(KeptOptions, OfAUrlAreNotPassedOver) {
  as_program({}, [&] {
    EXPECT_THAT(message_of<InvalidArgument>(
                    [&] { use_kept_options(ModeKeys::TRAIN, "s3://bucket/run", "", options_); }),
                HasSubstr("log_dir_of_run"));
    EXPECT_THROW(use_kept_options(ModeKeys::EVAL, "", "obs://bucket/run/checkpoint-3", options_),
                 InvalidArgument);
  });
}

// Not spelt once more, as a command line is: `~` and `$NAME` stand for themselves, and so do commas.
TEST_F(KeptOptions, AreGivenBackAsTheyWere) {
  const std::string yaml = directory_.file("names.yaml");
  std::ofstream(yaml) << "names: ['a, b', ' c', '[d]', '$$HOME', '']\nshape: $$HOME/x\n";
  train({"--config=" + yaml}, 2);
  const Texts names{"a, b", " c", "[d]", "$HOME", ""};
  EXPECT_EQ(value<Texts>("names"), names);
  EXPECT_EQ(value<std::string>("shape"), "$HOME/x");
  EXPECT_EQ(value<Texts>("names", {"--config=" + yaml}), names) << "the same may be given";
  train({}, 4);
  EXPECT_EQ(value<Texts>("names"), names);
}

TEST_F(KeptOptions, TextsThatBeginWithATilde) {
  ::setenv("MOX_TEST_SHAPE", "~x", 1);
  train({"--shape=$MOX_TEST_SHAPE"}, 2);
  ::unsetenv("MOX_TEST_SHAPE");
  EXPECT_EQ(value<std::string>("shape"), "~x");
}

TEST_F(KeptOptions, NoListAndAListOfAnEmptyTextDiffer) {
  const std::string yaml = directory_.file("names.yaml");
  std::ofstream(yaml) << "names: ['']\n";
  train({"--config=" + yaml}, 2);
  EXPECT_EQ(value<Texts>("names"), Texts{""});
  EXPECT_THAT(message_of<ConfigError>([&] { value<Texts>("names", {"--names="}); }), HasSubstr("names is"));
}

TEST_F(KeptOptions, ListsThatAreSpeltAlikeDiffer) {
  const std::string yaml = directory_.file("names.yaml");
  std::ofstream(yaml) << "names: ['a,b', c]\n";
  train({"--config=" + yaml}, 2);
  EXPECT_THAT(message_of<ConfigError>([&] { value<Texts>("names", {"--names=a,b,c"}); }),
              HasSubstr("names is 'a,b,c'"));
}

// Earlier ones kept of a list the text with commas.
TEST_F(KeptOptions, OfEarlierCheckpoints) {
  const internal::KeptValue units = "3,1", names = "x,~y", shape = "flat";
  as_program({}, [&] {
    internal::set_flag_from_kept("units", units, "'checkpoint'");
    internal::set_flag_from_kept("names", names, "'checkpoint'");
    EXPECT_EQ(get_flag<std::vector<int64_t>>("units"), (std::vector<int64_t>{3, 1}));
    EXPECT_EQ(get_flag<Texts>("names"), (Texts{"x", "~y"}));
    EXPECT_TRUE(internal::is_kept_value("units", units) && internal::is_kept_value("names", names));
    EXPECT_FALSE(internal::is_kept_value("shape", shape));
    EXPECT_THAT(
        message_of<ConfigError>([] { internal::set_flag_from_kept("size", Texts{"1"}, "'checkpoint'"); }),
        HasSubstr("'checkpoint': size expects an integer"));
    EXPECT_THAT(
        message_of<ConfigError>([] { internal::set_flag_from_kept("shape", Texts{"1"}, "'checkpoint'"); }),
        HasSubstr("'checkpoint': shape expects text, got a list of 1"));
  });
}

// Whoever may read a checkpoint reads them.
TEST_F(KeptOptions, AddressesAreKeptWithoutWhoAsks) {
  train({"--service=https://me:hunter2@host/a"}, 2);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(log_dir_)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_THAT(content, Not(HasSubstr("hunter2"))) << entry.path();
  }
  EXPECT_EQ(value<std::string>("service", {"--service=https://me:hunter3@host/a"}),
            "https://me:hunter3@host/a")
      << "another word, the same address";
  EXPECT_THAT(
      message_of<ConfigError>([&] { value<std::string>("service"); }),
      AllOf(HasSubstr(log_dir_), HasSubstr("service is 'https://***@host/a'"), HasSubstr("give the whole")));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { value<std::string>("service", {"--service=https://me:hunter3@other/a"}); }),
              AllOf(HasSubstr("service is 'https://***@other/a'"), HasSubstr("with 'https://***@host/a'"),
                    Not(HasSubstr("hunter"))));
}

class OtherOptionsHook : public TrainingHook {
 public:
  std::string name() const override { return "options"; }
  std::string save_state() const override { return R"({"units":[4],"shape":{}})"; }
  void restore_state(const std::string&) override {}
};

TEST_F(KeptOptions, InAnotherFormAreRefused) {
  as_program({}, [&] {
    RunSpec spec = one_weight_run(log_dir_, 2);
    spec.hooks = {std::make_shared<OtherOptionsHook>()};
    run_or_throw(spec);
  });
  EXPECT_THAT(message_of<DataError>([&] { used({}, ModeKeys::EVAL, ""); }),
              AllOf(HasSubstr("the options that '" + log_dir_), HasSubstr("keeps are damaged")));
}

TEST_F(KeptOptions, SecretsAreNotKept) {
  const ScopedConfiguration configuration;
  define_secret_flag("token", "Of a service.");
  configure({.program = "test", .arguments = {"--token=hush"}});
  EXPECT_THAT(message_of<InvalidArgument>([] { kept_options_hook({{"token"}}); }),
              HasSubstr("token is a secret"));
  EXPECT_THAT(message_of<InvalidArgument>([] { use_kept_options(ModeKeys::TRAIN, "", "", {{"token"}}); }),
              HasSubstr("token is a secret"));
  EXPECT_THAT(message_of<NotFound>([] { kept_options_hook({{"tokens"}}); }), HasSubstr("tokens"));
}

}  // namespace
}  // namespace mox
