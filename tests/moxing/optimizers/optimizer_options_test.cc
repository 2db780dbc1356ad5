// What the configuration may change of a program's optimizer, and what optimizers do through a run.
#include "moxing/optimizers/optimizer_options.h"

#include <gmock/gmock-more-matchers.h>

#include <cmath>

#include "moxing/config/options.h"
#include "moxing/optimizers/optimizer_wrapper.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/config/config_testing.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string described(const OptimizerFn& from_code, const std::vector<std::string>& arguments) {
  const ScopedConfiguration configuration(arguments);
  return internal::configured_optimizer(from_code)()->description();
}

TEST(ConfiguredOptimizerTest, IsTheProgramsWhereNothingIsConfigured) {
  EXPECT_EQ(
      described(get_optimizer_fn("momentum", {.learning_rate = 0.3, .weight_decay = 0.5, .momentum = 0.7}),
                {}),
      get_optimizer_fn("momentum", {.learning_rate = 0.3, .weight_decay = 0.5, .momentum = 0.7})()
          ->description());
}

TEST(ConfiguredOptimizerTest, IsPlainSgdWhereNobodySaysAnything) {
  EXPECT_EQ(described({}, {}), get_optimizer_fn("sgd", {.learning_rate = 0.01})()->description());
}

TEST(ConfiguredOptimizerTest, FlagsAndYamlWinOverTheProgram) {
  const auto in_code =
      get_optimizer_fn("momentum", {.learning_rate = 0.3, .weight_decay = 0.5, .momentum = 0.7});
  EXPECT_EQ(described(in_code, {"--optimizer.learning_rate=0.2", "--optimizer.momentum=0.8"}),
            get_optimizer_fn("momentum", {.learning_rate = 0.2, .weight_decay = 0.5, .momentum = 0.8})()
                ->description());
  const TemporaryFile yaml(
      "optimizer:\n  learning_rate: \"5:0.1->0.4\"\n  weight_decay: 0\n  nesterov: true\n");
  EXPECT_EQ(described(in_code, {"--config", yaml.path()}),
            get_optimizer_fn("momentum", {.learning_rate = "5:0.1->0.4", .momentum = 0.7, .nesterov = true})()
                ->description());
}

TEST(ConfiguredOptimizerTest, AnotherRuleDropsWhatIsParticularToTheOldOne) {
  const auto in_code =
      get_optimizer_fn("momentum", {.learning_rate = 0.3, .weight_decay = 0.5, .momentum = 0.7});
  EXPECT_EQ(described(in_code, {"--optimizer.name=adam"}),
            get_optimizer_fn("adam", {.learning_rate = 0.3, .weight_decay = 0.5})()->description());
  // But what the configuration asks for and the rule does not have is refused.
  EXPECT_THROW(described(in_code, {"--optimizer.name=adam", "--optimizer.momentum=0.5"}), InvalidArgument);
}

TEST(ConfiguredOptimizerTest, AProgramsOwnOptimizerCannotBeConfigured) {
  const OptimizerFn own = [] { return get_optimizer_fn("adam")(); };
  EXPECT_THAT(described(own, {}), HasSubstr("adam"));
  const std::string message = message_of<ConfigError>([&] {
    described(own, {"--optimizer.name=sgd", "--optimizer.weight_decay=0"});
  });
  EXPECT_THAT(message, AllOf(HasSubstr("optimizer.name (command line)"), HasSubstr("optimizer.weight_decay"),
                             HasSubstr("no effect")));
  EXPECT_THAT(described(own, {"--clip_gradient_norm=2"}), HasSubstr("2"))
      << "clipping goes around any optimizer";
}

TEST(ConfiguredOptimizerTest, ClippingIsAdded) {
  const ScopedConfiguration configuration(
      std::vector<std::string>{"--clip_gradient_norm=2", "--clip_gradient_value=0.5"});
  const auto optimizer = internal::configured_optimizer({})();
  EXPECT_EQ(optimizer->global_norm_limit(), 2);
  EXPECT_THAT(optimizer->description(), HasSubstr("0.5"));
}

TEST(ConfiguredOptimizerTest, BadTextIsRefused) {
  EXPECT_THROW(described({}, {"--optimizer.learning_rate=5:0.1->"}), Error);
}

TEST(ConfiguredOptimizerTest, YamlSetsEveryOptionOfARule) {
  const TemporaryFile adam("optimizer: {name: adam, beta1: 0.8, beta2: 0.95, epsilon: 1e-6}\n");
  EXPECT_EQ(described({}, {"--config", adam.path()}),
            get_optimizer_fn("adam", {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6})()->description());
  EXPECT_EQ(described(get_optimizer_fn("adam", {.beta1 = 0.8, .epsilon = 1e-6}), {"--optimizer.beta1=0.7"}),
            get_optimizer_fn("adam", {.beta1 = 0.7, .epsilon = 1e-6})()->description());
  EXPECT_EQ(described({}, {"--optimizer.name=rmsprop", "--optimizer.rho=0.5", "--optimizer.centered"}),
            get_optimizer_fn("rmsprop", {.rho = 0.5, .centered = true})()->description());
  EXPECT_EQ(
      described({}, {"--optimizer.name=ftrl", "--optimizer.initial_accumulator=0.5",
                     "--optimizer.l1_regularization=2", "--optimizer.l2_regularization=3"}),
      get_optimizer_fn("ftrl", {.initial_accumulator = 0.5, .l1_regularization = 2, .l2_regularization = 3})()
          ->description());
  EXPECT_THAT(message_of<InvalidArgument>([] { described({}, {"--optimizer.beta1=0.5"}); }),
              HasSubstr("optimizer \"sgd\" does not use the option beta1"));
}

TEST(ConfiguredOptimizerTest, GroupsGoByPatternsOfNames) {
  const TemporaryFile yaml(
      "optimizer:\n"
      "  weight_decay: 0.5\n"
      "  groups:\n"
      "    - {pattern: trunk/frozen/*, learning_rate_multiplier: 0}\n"
      "    - pattern: trunk/*\n"
      "      learning_rate_multiplier: 0.1\n"
      "    - pattern=*/bias? weight_decay=0.25\n");
  const ScopedConfiguration configuration({"--config", yaml.path()});
  const auto optimizer = internal::configured_optimizer({})();
  const auto of = [&](const char* name, const Shape& shape) {
    return optimizer->parameter_settings(name, shape);
  };
  EXPECT_EQ(of("trunk/frozen/a/w", {2, 2}).learning_rate_multiplier, 0);
  EXPECT_EQ(of("trunk/a/w", {2, 2}).learning_rate_multiplier, 0.1);
  EXPECT_EQ(of("trunk/a/w", {2, 2}).weight_decay, 0.5);
  EXPECT_EQ(of("trunk/a/b", {2}).weight_decay, 0) << "what a pattern does not say stays as it was";
  EXPECT_EQ(of("head/bias1", {2}).weight_decay, 0.25);
  EXPECT_EQ(of("head/bias1", {2}).learning_rate_multiplier, 1);
  EXPECT_EQ(of("head/w", {2, 2}).learning_rate_multiplier, 1);
  EXPECT_THAT(optimizer->description(), HasSubstr("pattern \"trunk/*\" (learning rate x 0.1)"));
  // What a run writes down gives the same again.
  const TemporaryFile again(effective_configuration());
  const ScopedConfiguration second({"--config", again.path()});
  EXPECT_EQ(internal::configured_optimizer({})()->description(), optimizer->description());
}

TEST(ConfiguredOptimizerTest, MistakesInGroupsAreNamed) {
  const TemporaryFile typo("optimizer:\n  groups:\n    - {patern: a, weight_decay: 0}\n");
  EXPECT_EQ(refusal({"--config", typo.path()}),
            typo.path() +
                ":3: unknown key 'patern' in optimizer.groups; it takes pattern, learning_rate_multiplier, "
                "weight_decay.");
  const TemporaryFile nested("optimizer:\n  groups:\n    - {pattern: [a, b], weight_decay: 0}\n");
  EXPECT_THAT(refusal({"--config", nested.path()}),
              HasSubstr(":3: 'pattern' in optimizer.groups takes one word."));
  const auto refused = [](const std::string& groups) {
    return message_of<ConfigError>([&] { described({}, {"--optimizer.groups=" + groups}); });
  };
  EXPECT_THAT(refused("trunk/*"),
              HasSubstr("command line: optimizer.groups: parameter group \"trunk/*\": expected"));
  EXPECT_THAT(refused("pattern=a"), HasSubstr("learning_rate_multiplier or weight_decay beside the pattern"));
  EXPECT_THAT(refused("weight_decay=0"), HasSubstr("expected pattern=NAME"));
  EXPECT_THAT(refused("pattern=a weight_decay=x"),
              HasSubstr("expected a number after weight_decay=, not 'x'"));
  EXPECT_THAT(refused("pattern=a weight_decay=-1"), HasSubstr("must be a finite number >= 0, got -1"));
  EXPECT_THAT(refused("pattern=a pattern=b weight_decay=1"), HasSubstr("expected pattern once"));
}

class OptimizerRun : public SmallRun {
 protected:
  std::vector<double> rates_of(RunSpec s) {
    std::vector<double> rates;
    s.hooks.push_back(before_run_hook([&](Session& session) { rates.push_back(session.learning_rate()); }));
    run_or_throw(s);
    return rates;
  }
  // Two variables with known gradients: "a" [2] with (3, 4), "b" [1, 1] with 12: a global norm of 13.
  static ModelSpec two_variables(const Inputs& in, ModeKeys) {
    const Tensor a = get_variable("a", {2}, ones()), b = get_variable("b", {1, 1}, ones());
    const Tensor slope = constant(Array::from<float>({2}, {3.0f, 4.0f}));
    const Tensor loss = reduce_sum(a * slope) + reduce_sum(b) * 12.0f + reduce_sum(in[0]) * 0.0f;
    return {.loss = loss, .log_info = {{"loss", loss}}};
  }
};

// The file that a run writes must lead to the same run again: what the program chose stays
// the program's choice.
TEST_F(OptimizerRun, ConfigurationYamlGivesTheSameRunAgain) {
  auto s = spec();
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.5});
  run_or_throw(s);
  const std::string digest = checkpoint_digest(log_dir_);
  const TemporaryFile file(read_file(log_dir_ + "/configuration.yaml"));
  const std::string directory = fresh_directory("again");
  const ScopedConfiguration configuration(
      std::vector<std::string>{"--config", file.path(), "--log_dir", directory});
  run_or_throw(s);
  EXPECT_EQ(checkpoint_digest(directory), digest);
}

TEST_F(OptimizerRun, ConfigurationYamlHoldsTheLearningRateOfTheProgram) {
  auto s = spec();
  for (const Schedule& rate : {Schedule(0.5), Schedule("1:0.5->0.25,2:0.125")}) {
    s.log_dir = fresh_directory("recorded");
    s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = rate});
    const auto rates = rates_of(s);
    EXPECT_THAT(read_file(*s.log_dir + "/configuration.yaml"), HasSubstr("\n  learning_rate: "));
    // The file is the run: another rate in the program changes nothing.
    const TemporaryFile file(read_file(*s.log_dir + "/configuration.yaml"));
    s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 7});
    const ScopedConfiguration configuration(
        std::vector<std::string>{"--config", file.path(), "--log_dir", fresh_directory("again")});
    EXPECT_EQ(rates_of(s), rates);
  }
}

TEST_F(OptimizerRun, ALearningRateThatHasNoTextIsNotInConfigurationYaml) {
  auto s = spec();
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = cosine_decay(0.5, 4)});
  run_or_throw(s);
  EXPECT_THAT(read_file(log_dir_ + "/configuration.yaml"), Not(HasSubstr("\n  learning_rate: ")));
}

TEST_F(OptimizerRun, ARunGoesOnWithItsOptimizerOnly) {
  auto s = spec();
  s.max_number_of_steps = 2;
  s.optimizer_fn = get_optimizer_fn("adam", {.learning_rate = 0.5});
  run_or_throw(s);
  s.max_number_of_steps = 4;
  s.optimizer_fn = get_optimizer_fn("momentum", {.learning_rate = 0.5});
  EXPECT_THAT(message_of_run<FailedPrecondition>(s),
              AllOf(HasSubstr("trained with the optimizer adam"), HasSubstr("cannot go on with momentum"),
                    HasSubstr(log_dir_), HasSubstr("--checkpoint_path")));
  EXPECT_EQ(run(s), 2);
  s.optimizer_fn = get_optimizer_fn("adam", {.learning_rate = 0.25, .beta1 = 0.5});
  EXPECT_EQ(run_or_throw(s).global_step, 4) << "other settings of the same rule are a matter of the user's";
  const std::string other = fresh_directory("other_rule");
  s.checkpoint_path = log_dir_;
  s.log_dir = other;
  s.optimizer_fn = get_optimizer_fn("momentum", {.learning_rate = 0.5});
  EXPECT_EQ(run_or_throw(s).global_step, 4) << "the way that the message names";
}

TEST_F(OptimizerRun, ConfigurationYamlOfAnOptimizerOfOnesOwnIsAccepted) {
  auto s = spec();
  s.optimizer_fn = [] { return get_optimizer_fn("sgd", {.learning_rate = 0.5})(); };
  run_or_throw(s);
  const TemporaryFile file(read_file(log_dir_ + "/configuration.yaml"));
  const ScopedConfiguration configuration(std::vector<std::string>{
      "--config", file.path(), "--log_dir", fresh_directory("again"), "--threads=1", "--log_level=error"});
  EXPECT_EQ(run_or_throw(s).global_step, 4);
}

TEST_F(OptimizerRun, AScheduleInEpochsIsSeenStepByStep) {
  auto s = spec();
  s.max_number_of_steps = 12;
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = "1:1->2,2:4"});  // five steps in an epoch
  const auto rates = rates_of(s);
  ASSERT_EQ(rates.size(), 12u);
  double sum = 0;
  for (size_t i = 0; i < rates.size(); ++i) {
    EXPECT_NEAR(rates[i], i < 5 ? 1 + static_cast<double>(i) / 5 : 4, 1e-12) << i;
    sum += rates[i];
  }
  EXPECT_NEAR(saved("w").item(), -sum, 1e-5);
}

TEST_F(OptimizerRun, AScheduleInEpochsNeedsTheirSize) {
  auto s = spec();
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = "1:1->2"});
  s.input_fn = [](ModeKeys) {
    return counting_data(10).filter([](const Element&) { return true; }).repeat();
  };
  EXPECT_THAT(message_of_run<FailedPrecondition>(s), HasSubstr("write it in steps"));
}

TEST_F(OptimizerRun, ClippingByTheGlobalNormScalesAllGradients) {
  auto s = spec();
  s.max_number_of_steps = 1;
  s.model_fn = two_variables;
  const auto clip = get_optimizer_wrapper_fn("clip_by_global_norm", {.limit = 6.5});
  s.optimizer_fn = clip(get_optimizer_fn("sgd", {.learning_rate = 1}));
  run_or_throw(s);
  EXPECT_FLOAT_EQ(saved("a").values<float>()[0], 1 - 1.5f);
  EXPECT_FLOAT_EQ(saved("a").values<float>()[1], 1 - 2.0f);
  EXPECT_FLOAT_EQ(saved("b").values<float>()[0], 1 - 6.0f);
}

TEST_F(OptimizerRun, ClippingByTheGlobalNormLeavesSmallGradientsAlone) {
  auto s = spec();
  s.max_number_of_steps = 1;
  s.model_fn = two_variables;
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 1});
  const ScopedConfiguration configuration(
      std::vector<std::string>{"--threads=1", "--log_level=error", "--clip_gradient_norm=13.5"});
  run_or_throw(s);
  EXPECT_FLOAT_EQ(saved("b").values<float>()[0], 1 - 12.0f);
}

TEST_F(OptimizerRun, ClippingByValueCutsEachElement) {
  auto s = spec();
  s.max_number_of_steps = 1;
  s.model_fn = two_variables;
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 1});
  const ScopedConfiguration configuration(
      std::vector<std::string>{"--threads=1", "--log_level=error", "--clip_gradient_value=3.5"});
  run_or_throw(s);
  EXPECT_FLOAT_EQ(saved("a").values<float>()[0], 1 - 3.0f);
  EXPECT_FLOAT_EQ(saved("a").values<float>()[1], 1 - 3.5f);
  EXPECT_FLOAT_EQ(saved("b").values<float>()[0], 1 - 3.5f);
}

TEST_F(OptimizerRun, ParameterGroupsDecideByName) {
  auto s = spec();
  s.max_number_of_steps = 1;
  s.model_fn = two_variables;
  s.optimizer_fn = get_optimizer_fn(
      "sgd",
      {.learning_rate = 0.5,
       .weight_decay = 2,
       .parameter_groups = {{.name = "slow",
                             .matches = [](std::string_view name, const Shape&) { return name == "a"; },
                             .learning_rate_multiplier = 0.1,
                             .weight_decay = 0}}});
  run_or_throw(s);
  EXPECT_FLOAT_EQ(saved("a").values<float>()[0], 1 - 0.5f * 0.1f * 3);
  EXPECT_FLOAT_EQ(saved("b").values<float>()[0], 1 - 0.5f * (12 + 2));
}

TEST_F(OptimizerRun, PatternsDecideByName) {
  auto s = spec();
  s.max_number_of_steps = 1;
  s.model_fn = two_variables;
  s.options = {{"optimizer.groups", std::vector<std::string>{"pattern=a learning_rate_multiplier=0",
                                                             "pattern=? learning_rate_multiplier=0.5"}}};
  run_or_throw(s);
  EXPECT_FLOAT_EQ(saved("a").values<float>()[0], 1);
  EXPECT_FLOAT_EQ(saved("b").values<float>()[0], 1 - 0.5f * 12);
}

TEST_F(OptimizerRun, AGroupThatMatchesNothingIsRefused) {
  auto s = spec();
  s.model_fn = two_variables;
  s.options = {{"optimizer.groups", std::vector<std::string>{"pattern=trunk/* learning_rate_multiplier=0"}}};
  EXPECT_EQ(
      message_of_run<InvalidArgument>(s),
      "the pattern 'trunk/*' of a parameter group matches none of the 2 trainable variables (a, b), so it "
      "would do nothing; correct or remove it");
  s.options = {};
  s.optimizer_fn = get_optimizer_fn(
      "sgd", {.parameter_groups = {{.name = "slow", .matches = [](std::string_view name, const Shape&) {
                                      return name == "c";
                                    }}}});
  EXPECT_THAT(message_of_run<InvalidArgument>(s),
              HasSubstr("the parameter group \"slow\" matches none of the 2"));
}

TEST_F(OptimizerRun, RunSpecSetsTheDefaultOfAnyOption) {
  auto s = spec();
  s.options = {{"precision", "bf16"},
               {"keep_checkpoints", 3},
               {"optimizer.learning_rate", 0.5},
               {"num_devices", 1},
               {"allow_inexact", true}};
  run_or_throw(s);
  EXPECT_FLOAT_EQ(saved("w").values<float>()[0], -2) << "four steps at 0.5";
  EXPECT_THAT(read_file(log_dir_ + "/configuration.yaml"),
              AllOf(HasSubstr("precision: \"bf16\""), HasSubstr("# RunSpec::options")));
  s.options = {};
  s.log_dir = fresh_directory("second");
  run_or_throw(s);
  EXPECT_THAT(read_file(*s.log_dir + "/configuration.yaml"), HasSubstr("precision: \"fp32\""))
      << "the second run does not see what the first one said";
  const ScopedConfiguration flag({"--threads=1", "--log_level=error", "--keep_checkpoints=4"});
  s.options = {{"keep_checkpoints", 3}};
  run_or_throw(s);
  EXPECT_EQ(option_origin("keep_checkpoints"), "command line");
}

TEST_F(OptimizerRun, OptionsOfTheRunSpecAreChecked) {
  auto s = spec();
  s.options = {{"presicion", "bf16"}};
  EXPECT_THAT(message_of_run<NotFound>(s), HasSubstr("the nearest known flag is 'precision'"));
  s.options = {{"precision", "int8"}};
  EXPECT_THAT(message_of_run<ConfigError>(s), HasSubstr("RunSpec::options: precision must be fp32 or bf16"));
  s.options = {{"keep_checkpoints", "three"}};
  EXPECT_THAT(message_of_run<InvalidArgument>(s),
              HasSubstr("'keep_checkpoints' is an option of type integer"));
  s.options = {{"seed", 1}, {"seed", 2}};
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("gives 'seed' twice"));
  s.options = {{"batch_size", 4}};
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("'batch_size' is given twice by the program"));
  for (const char* held : {"file.region", "log_level"}) {
    s.options = {{held, "error"}};
    EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("counts from mox::init on")) << held;
  }
  s.options = {{"config", "run.yaml"}};
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("can only be given on the command line"));
}

TEST_F(OptimizerRun, VectorsHaveNoWeightDecayUnlessToldOtherwise) {
  auto s = spec();
  s.max_number_of_steps = 1;
  s.model_fn = two_variables;
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.5, .weight_decay = 2});
  run_or_throw(s);
  EXPECT_FLOAT_EQ(saved("a").values<float>()[0], 1 - 0.5f * 3);
  EXPECT_FLOAT_EQ(saved("b").values<float>()[0], 1 - 0.5f * (12 + 2));
}

}  // namespace
}  // namespace mox
