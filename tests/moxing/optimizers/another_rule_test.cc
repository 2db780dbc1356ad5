// Another rule than the program's, whose own options the program gives by their names.
#include <gmock/gmock.h>

#include "moxing/config/options.h"
#include "moxing/optimizers/optimizer_options.h"
#include "runtime/base/error.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// As fashion_lenet and cifar_resnet say it.
const ProgramDefaults kMomentum = {
    {"optimizer.name", "momentum"}, {"optimizer.learning_rate", 0.25}, {"optimizer.momentum", 0.75}};

std::string described(const std::vector<std::string>& arguments) {
  const ScopedConfiguration scope;
  configure({.program = "test", .arguments = arguments, .defaults = kMomentum});
  internal::configured_optimizer({});
  return internal::configured_optimizer({})()->description();
}

TEST(AnotherRule, TakesNothingThatIsParticularToTheProgramsOwn) {
  EXPECT_THAT(described({}), AllOf(HasSubstr("momentum: learning rate 0.25"), HasSubstr("momentum 0.75")));
  EXPECT_THAT(described({"--optimizer.name=momentum"}), HasSubstr("momentum 0.75"));
  EXPECT_EQ(described({"--optimizer.name=sgd"}),
            get_optimizer_fn("sgd", {.learning_rate = 0.25})()->description());
  EXPECT_EQ(described({"--optimizer.name=rmsprop"}),
            get_optimizer_fn("rmsprop", {.learning_rate = 0.25})()->description());
  EXPECT_EQ(described({"--optimizer.name=rmsprop", "--optimizer.momentum=0.5"}),
            get_optimizer_fn("rmsprop", {.learning_rate = 0.25, .momentum = 0.5})()->description());
  EXPECT_THROW(described({"--optimizer.name=sgd", "--optimizer.momentum=0.5"}), InvalidArgument);
}

class AnotherRuleRun : public SmallRun {};

TEST_F(AnotherRuleRun, ConfigurationYamlGivesTheSameRunAgain) {
  auto s = spec();
  s.options = {
      {"optimizer.name", "momentum"}, {"optimizer.learning_rate", 0.25}, {"optimizer.momentum", 0.75}};
  {
    const ScopedConfiguration flags({"--threads=1", "--log_level=error", "--optimizer.name=adam"});
    run_or_throw(s);
    EXPECT_THAT(effective_configuration(), Not(HasSubstr("  momentum:")));
  }
  const std::string again = fresh_directory("another_rule_again");
  {
    const ScopedConfiguration flags({"--config=" + log_dir_ + "/configuration.yaml", "--log_dir=" + again});
    run_or_throw(s);
  }
  EXPECT_EQ(load_checkpoint(again).state.at("optimizer"), load_checkpoint(log_dir_).state.at("optimizer"));
  const ScopedConfiguration flags({"--threads=1", "--log_level=error", "--optimizer.learning_rate=0.5"});
  s.log_dir = fresh_directory("the_programs_rule");
  run_or_throw(s);
  EXPECT_THAT(effective_configuration(), HasSubstr("  momentum: 0.75"));
}

}  // namespace
}  // namespace mox
