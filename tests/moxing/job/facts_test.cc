// What ranks tell each other of their configurations, to compare them.
#include "moxing/job/facts.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "moxing/config/flags.h"
#include "moxing/config/init.h"

namespace mox::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JobFacts facts_with(const std::vector<std::string>& arguments) {
  const ScopedConfiguration scope;
  define_secret_flag("api_key", "The key of a service.");
  define_secret_flag("service.token", "Its token.");
  EXPECT_FALSE(configure({.program = "p", .arguments = arguments}));
  return facts_of_configuration();
}

// Each rank may have its own.
TEST(FactsOfConfiguration, SayNothingOfSecrets) {
  const JobFacts facts = facts_with({"--api_key=hunter2", "--service.token=hunter2",
                                     "--file.endpoint=http://me:hunter2@host:9000", "--seed=7"});
  for (const auto& [subject, text] : facts) {
    EXPECT_THAT(text, Not(HasSubstr("hunter2")));
    EXPECT_THAT(text, Not(HasSubstr("#")));
  }
  const auto differing = [](const JobFacts& left, const JobFacts& right) {
    std::vector<std::string> texts;
    for (const auto& fact : left)
      if (std::find(right.begin(), right.end(), fact) == right.end() && !fact.second.ends_with(":"))
        texts.push_back(fact.second);
    return texts;
  };
  EXPECT_THAT(differing(facts, facts_with({"--seed=8", "--file.endpoint=http://host:9000"})),
              ::testing::ElementsAre("seed: 7", "  endpoint: \"http://***@host:9000\""));
}

}  // namespace
}  // namespace mox::internal
