// The set belongs to the process, so each test that fixes it does so in a process of its own.
#include "ops/processor/instruction_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "ops/fusion/default_rules.h"
#include "ops/ops.h"
#include "runtime/exec/plan_instance.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

constexpr InstructionSet kAllInstructionSets[] = {InstructionSet::kAvx2, InstructionSet::kAvx512,
                                                  InstructionSet::kAvx512BFloat16, InstructionSet::kAmx};

// The plan, which was run once, of ops that have kernels for several sets: a convolution, batch
// normalisation, wide and narrow products.
std::string plan_after_a_run() {
  Graph graph;
  const GraphScope scope(graph);
  const SourceLocation here = SourceLocation::current();
  const std::vector<Array> inputs = {test::random_array({8, 16, 14, 14}, 1),
                                     test::random_array({32, 16, 3, 3}, 2),
                                     test::random_array({64, 1024}, 3),
                                     test::random_array({1024, 1024}, 4),
                                     test::random_array({1024, 10}, 5),
                                     test::random_array({32}, 6, 0.5F, 1.5F),
                                     test::random_array({32}, 7)};
  std::vector<Tensor> in;
  for (size_t i = 0; i < inputs.size(); ++i)
    in.push_back(graph.input(static_cast<int>(i), inputs[i].type(), here));
  const Tensor image = conv2d(in[0], in[1]);
  const BatchNormResult normal = batch_norm(image, in[5], in[6]);
  const Tensor wide = matmul(in[2], in[3]);
  const std::vector<Tensor> fetches = {relu(normal.y), wide, matmul(wide, in[4])};
  const Team team(1);
  team.enter();
  const auto plan = Plan::compile(graph, {.fetches = fetches, .gradients = {}, .after_step_values = {}},
                                  test::compile_options(), team);
  PlanInstance instance(plan, team, [](std::string_view) { return Array(); });
  instance.run({.components = inputs});
  return plan->describe();
}

TEST(InstructionSetTest, HasANameForEach) {
  for (const InstructionSet set : kAllInstructionSets)
    EXPECT_EQ(instruction_set_from_string(to_string(set)), set) << to_string(set);
  for (const char* unknown : {"sse2", "AVX2", ""})
    EXPECT_FALSE(instruction_set_from_string(unknown).has_value()) << unknown;
}

TEST(InstructionSetTest, IsWhatIsAvailableWhereNothingLimitsIt) {
  EXPECT_EQ(instruction_set(), available_instruction_set());
}

// The environment's limit is oneDNN's; ours follows it.
TEST(InstructionSetDeathTest, FollowsTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto with = [](const char* variable, const char* value, InstructionSet limit) {
    for (const char* either : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) unsetenv(either);
    const InstructionSet expected = std::min(available_instruction_set(), limit);
    setenv(variable, value, 1);
    const bool good = available_instruction_set() == expected && instruction_set() == expected;
    std::_Exit(good ? 0 : 1);
  };
  EXPECT_EXIT(with("DNNL_MAX_CPU_ISA", "AVX2", InstructionSet::kAvx2), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(with("ONEDNN_MAX_CPU_ISA", "avx2", InstructionSet::kAvx2), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(with("DNNL_MAX_CPU_ISA", "AVX512_CORE", InstructionSet::kAvx512), testing::ExitedWithCode(0),
              "");
  EXPECT_EXIT(with("DNNL_MAX_CPU_ISA", "ALL", InstructionSet::kAmx), testing::ExitedWithCode(0), "");
}

TEST(InstructionSetDeathTest, HoldsForAllKernelsThatAreCompiledAfterIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto limited = [] {
    if (!limit_instruction_set(InstructionSet::kAvx2) || instruction_set() != InstructionSet::kAvx2)
      std::_Exit(1);
    if (bfloat16_support() != BFloat16Support::kNone) std::_Exit(2);
    const std::string plan = plan_after_a_run();
    if (plan.find("avx512") != std::string::npos) std::_Exit(3);
    if (plan.find("avx2") == std::string::npos) std::_Exit(4);
    std::_Exit(0);
  };
  EXPECT_EXIT(limited(), testing::ExitedWithCode(0), "");
}

TEST(InstructionSetDeathTest, ALimitThatComesTooLateChangesNothing) {
  if (available_instruction_set() == InstructionSet::kAvx2) GTEST_SKIP() << "needs AVX-512";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto late = [] {
    if (plan_after_a_run().find("avx512") == std::string::npos) std::_Exit(1);
    if (limit_instruction_set(InstructionSet::kAvx2)) std::_Exit(2);
    if (instruction_set() != available_instruction_set()) std::_Exit(3);
    std::_Exit(plan_after_a_run().find("avx512") != std::string::npos ? 0 : 4);
  };
  EXPECT_EXIT(late(), testing::ExitedWithCode(0), "");
}

TEST(InstructionSetDeathTest, ALimitAboveWhatIsAvailableIsNone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto above = [] {
    unsetenv("ONEDNN_MAX_CPU_ISA");  // which goes before the other one
    setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);
    const bool within = limit_instruction_set(InstructionSet::kAvx512);
    std::_Exit(within && instruction_set() == InstructionSet::kAvx2 ? 0 : 1);
  };
  EXPECT_EXIT(above(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace mox
