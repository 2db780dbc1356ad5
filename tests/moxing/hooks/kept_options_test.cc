// Options go with the checkpoint: whatever uses it takes the same.
#include "moxing/hooks/kept_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "moxing/moxing.h"
#include "tests/moxing/small_run.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class KeptOptions : public testing::Test {
 protected:
  // A program with these arguments, which asks for the options and then does `then`.
  template <typename Do>
  void as_program(const std::vector<std::string>& arguments, const Do& then) const {
    const ScopedConfiguration configuration;
    define_flag("units", std::vector<int64_t>{4, 2}, "Of layers.");
    define_flag("shape", "round", "Of the model.");
    define_flag("size", 0, "Of images.");
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

  const std::vector<KeptOption> options_{{"units"}, {"shape"}, {"size", true}};
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

TEST_F(KeptOptions, SecretsAreNotKept) {
  const ScopedConfiguration configuration;
  define_secret_flag("token", "Of a service.");
  configure({.program = "test", .arguments = {"--token=hush"}});
  EXPECT_THAT(message_of<InvalidArgument>([] { kept_options_hook({{"token"}}); }),
              HasSubstr("token is a secret"));
  EXPECT_THAT(message_of<NotFound>([] { kept_options_hook({{"tokens"}}); }), HasSubstr("tokens"));
}

}  // namespace
}  // namespace mox
