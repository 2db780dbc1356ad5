// What a training takes of the checkpoint that it starts from, and what it leaves as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/layers/layers.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ModelSpec two_layers(const Inputs& in, ModeKeys mode, const std::string& scope, int64_t classes) {
  Tensor x = in[0];
  {
    const auto body = var_scope(scope);
    x = layers::dense(x, 3, {.name = "fc"});
    x = layers::batch_norm(x, mode, {.name = "bn", .momentum = 0.5f});
  }
  const Tensor loss = reduce_mean(square(layers::dense(x, classes, {.name = "head"}) - 1.0f));
  return {.loss = loss, .log_info = {{"loss", loss}}};
}

class WarmStart : public SmallRun {
 protected:
  WarmStart() {
    RunSpec s = spec_of("body", 2);
    run_or_throw(s);
    before_ = load_checkpoint(log_dir_);
  }

  RunSpec spec_of(const std::string& scope, int64_t classes) {
    RunSpec s = spec();
    s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.01});
    s.model_fn = [=](const Inputs& in, ModeKeys mode) { return two_layers(in, mode, scope, classes); };
    return s;
  }

  // A run that starts from the first one; it has not learnt when a learning rate of 0 is asked for.
  RunSpec started(const std::string& scope, int64_t classes, double learning_rate = 0) {
    RunSpec s = spec_of(scope, classes);
    s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = learning_rate});
    s.checkpoint_path = log_dir_;
    s.log_dir = fresh_directory("warm_start");
    s.seed = 2;
    return s;
  }

  static std::vector<float> value(const Checkpoint& checkpoint, const std::string& name) {
    for (const NamedArray& variable : checkpoint.variables)
      if (variable.name == name) {
        const auto values = variable.value.values<float>();
        return {values.begin(), values.end()};
      }
    ADD_FAILURE() << "no variable " << name;
    return {};
  }

  std::vector<float> before(const std::string& name) const { return value(before_, name); }
  static std::vector<float> after(const RunSpec& s, const std::string& name) {
    return value(load_checkpoint(*s.log_dir), name);
  }

  Checkpoint before_;
};

TEST_F(WarmStart, PatternsSayWhatIsTaken) {
  RunSpec s = started("body", 2);
  s.checkpoint_exclude_patterns = {{"^head/"}};
  run_or_throw(s);
  EXPECT_EQ(after(s, "body/fc/kernel"), before("body/fc/kernel"));
  EXPECT_NE(after(s, "head/kernel"), before("head/kernel"));

  s = started("body", 2);
  s.checkpoint_include_patterns = {{"kernel$"}};
  s.checkpoint_exclude_patterns = {{"fc"}};
  run_or_throw(s);
  EXPECT_NE(after(s, "body/fc/kernel"), before("body/fc/kernel"));
  EXPECT_EQ(after(s, "head/kernel"), before("head/kernel"));
}

TEST_F(WarmStart, NamesAreReplacedBeforePatternsLookAtThem) {
  RunSpec s = started("tower", 2);
  s.checkpoint_rename = {{{"^body/", "tower/"}}};
  s.checkpoint_exclude_patterns = {{"^tower/bn"}};
  run_or_throw(s);
  EXPECT_EQ(after(s, "tower/fc/kernel"), before("body/fc/kernel"));
  EXPECT_EQ(after(s, "head/kernel"), before("head/kernel"));
  const std::string list = read_file(*s.log_dir + "/restored_variables.txt");
  EXPECT_THAT(list, AllOf(HasSubstr("# left out as asked: 4\n"), HasSubstr("tower/bn/moving_mean")));
}

TEST_F(WarmStart, ThatIsAskedForInAFileIsTheSame) {
  const ScopedConfiguration configuration({"--threads=1", "--log_level=error",
                                           "--checkpoint_rename=^body/ -> tower/",
                                           "--checkpoint_exclude_patterns=^head/,^tower/bn"});
  RunSpec s = started("tower", 5);
  run_or_throw(s);
  EXPECT_EQ(after(s, "tower/fc/kernel"), before("body/fc/kernel"));
  EXPECT_EQ(after(s, "head/kernel").size(), 15u);
}

TEST_F(WarmStart, AFileIsNoCheckpoint) {
  RunSpec s = started("body", 2);
  const std::string file = log_dir_ + "/snapshot-4.safetensors";
  write_file_atomically(file, "");
  s.checkpoint_path = file;
  EXPECT_THAT(message_of_run<NotFound>(s),
              AllOf(HasSubstr(file), HasSubstr("Give a checkpoint-<step> directory")));
}

// One was meant, and is not named: a training from initial values would look like the one that was wanted.
TEST_F(WarmStart, WhatIsTakenOfNoCheckpointIsRefused) {
  for (const char* option : {"--checkpoint_include_patterns=kernel", "--checkpoint_exclude_patterns=^head/",
                             "--checkpoint_rename=^head/ -> head/", "--on_shape_mismatch=initialise"}) {
    const ScopedConfiguration configuration({"--threads=1", "--log_level=error", option});
    RunSpec s = started("body", 2);
    run_or_throw(s);  // from one, and on from its own
    s.max_number_of_steps = 6;
    run_or_throw(s);
    s.checkpoint_path = "";
    s.log_dir = fresh_directory("no_checkpoint");
    const std::string given(option), name = given.substr(2, given.find('=') - 2);
    EXPECT_THAT(message_of_run<ConfigError>(s),
                AllOf(HasSubstr(name + " is set (command line)"), HasSubstr("checkpoint_path")));
  }
  RunSpec s = spec_of("body", 2);  // a program serves those who name a checkpoint and those who do not
  s.checkpoint_exclude_patterns = {{"^head/"}};
  s.log_dir = fresh_directory("no_checkpoint");
  run_or_throw(s);
  const std::string written = *s.log_dir + "/configuration.yaml";  // where what code has said stands, too
  {
    const ScopedConfiguration configuration({"--config=" + written, "--log_level=error"});
    s.log_dir = fresh_directory("the_same_again");
    run_or_throw(s);
  }
  s.checkpoint_exclude_patterns.reset();
  s.options = {{"on_shape_mismatch", "initialise"}};
  s.log_dir = fresh_directory("no_checkpoint_either");
  run_or_throw(s);
}

TEST_F(WarmStart, APatternThatMatchesNothingIsRefused) {
  RunSpec s = started("body", 2);
  s.checkpoint_exclude_patterns = {{"^logits/"}};
  EXPECT_THAT(message_of_run<InvalidArgument>(s),
              AllOf(HasSubstr("checkpoint_exclude_patterns: '^logits/'"), HasSubstr(log_dir_)));
  s.checkpoint_exclude_patterns = {{"."}};
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("leave nothing of the 8 variables"));
}

TEST_F(WarmStart, AnotherShapeIsRefusedUnlessItMayBeginAnew) {
  RunSpec s = started("body", 5);
  EXPECT_THAT(message_of_run<InvalidArgument>(s),
              AllOf(HasSubstr("the checkpoint has 'head/"), HasSubstr("--on_shape_mismatch=initialise")));
  s.on_shape_mismatch = "initialise";
  run_or_throw(s);
  EXPECT_EQ(after(s, "body/fc/kernel"), before("body/fc/kernel"));
  EXPECT_EQ(after(s, "head/kernel").size(), 15u);
  const std::string list = read_file(*s.log_dir + "/restored_variables.txt");
  EXPECT_THAT(list, AllOf(HasSubstr("# begun anew, since their shapes differ: 2\n"),
                          HasSubstr("head/kernel (float32[3, 5], in the checkpoint float32[3, 2])")));
}

TEST_F(WarmStart, ARunThatGoesOnTakesAllOfItsOwn) {
  RunSpec s = started("body", 2);
  s.checkpoint_exclude_patterns = {{"^head/"}};
  run_or_throw(s);
  const auto head = after(s, "head/kernel");
  s.max_number_of_steps = 6;
  run_or_throw(s);
  EXPECT_EQ(after(s, "head/kernel"), head);
}

TEST_F(WarmStart, FrozenVariablesAndTheirAveragesStay) {
  RunSpec s = started("body", 2, 0.1);
  s.freeze = {{"^body/"}};
  run_or_throw(s);
  for (const char* name :
       {"body/fc/kernel", "body/bn/scale", "body/bn/moving_mean", "body/bn/moving_variance"})
    EXPECT_EQ(after(s, name), before(name)) << name;
  EXPECT_NE(after(s, "head/kernel"), before("head/kernel"));
}

// As where the checkpoint was forgotten: a network of random values that is never trained.
TEST_F(WarmStart, WhatIsFrozenAndNotRestoredIsSaid) {
  const auto said = [](const RunSpec& s) {
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    run_or_throw(s);
    return testing::internal::GetCapturedStderr();
  };
  const auto frozen = [](int number) {
    return HasSubstr(std::to_string(number) +
                     " of 6 trainable variables are frozen (freeze, var_scopes, a "
                     "learning rate times 0) with their initial values");
  };
  RunSpec s = started("body", 2, 0.1);
  s.freeze = {{"^body/"}};
  EXPECT_EQ(said(s), "");
  s.log_dir = fresh_directory("left_out");
  s.checkpoint_exclude_patterns = {{"body/fc"}};
  EXPECT_THAT(said(s), frozen(2));
  s.checkpoint_exclude_patterns.reset();
  s.checkpoint_path = "";
  s.log_dir = fresh_directory("forgotten");
  EXPECT_THAT(said(s), AllOf(frozen(4), HasSubstr("body/bn/scale"), Not(HasSubstr("moving"))));
  s.max_number_of_steps = 6;
  EXPECT_EQ(said(s), "") << "it was said when the run began";
  s = started("body", 5, 0.1);
  s.on_shape_mismatch = "initialise";
  s.freeze = {{"^head/kernel"}};
  EXPECT_THAT(said(s), AllOf(frozen(1), HasSubstr("head/kernel")));
  s = spec_of("body", 2);
  s.log_dir = fresh_directory("scopes");
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec model = two_layers(in, mode, "body", 2);
    model.var_scopes = {"head"};
    return model;
  };
  EXPECT_THAT(said(s), frozen(4));
}

TEST_F(WarmStart, FreezingNothingOrEverythingIsRefused) {
  RunSpec s = started("body", 2, 0.1);
  s.freeze = {{"^tower/"}};
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("freeze: '^tower/' is found in none"));
  s.freeze = {{"."}};
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("nothing to train"));
}

// What a run was given to start from is said where it starts from something else.
TEST_F(WarmStart, ValuesOfTheProgramThatAreNotTakenAreSaid) {
  const auto said = [](RunSpec s, const std::string& name) {
    s.starting_variables = []() -> StartingVariables { throw FailedPrecondition("nobody needs them"); };
    s.starting_variables_name = name;
    const ScopedConfiguration configuration({"--threads=1", "--log_level=info"});
    testing::internal::CaptureStderr();
    run_or_throw(s);
    return testing::internal::GetCapturedStderr();
  };
  RunSpec continued = spec_of("body", 2);
  continued.max_number_of_steps = 6;
  EXPECT_THAT(said(continued, "my.option 'a'"),
              HasSubstr("; my.option 'a' is not read: it is where a training begins"));
  EXPECT_THAT(said(continued, ""), HasSubstr("RunSpec::starting_variables"));
  EXPECT_THAT(said(started("body", 2), "my.option 'a'"),
              HasSubstr("; my.option 'a' is not read: checkpoint_path"));
  continued.run_mode = ModeKeys::EVAL;
  EXPECT_THAT(said(continued, "my.option 'a'"), Not(HasSubstr("my.option"))) << "they are for trainings";
}

}  // namespace
}  // namespace mox
