// Which team computes a plan where nobody has said how many threads.
#include <gtest/gtest.h>

#include <cstring>

#include "moxing/engine/compile/compiled_model.h"
#include "moxing/layers/layers.h"
#include "ops/ops.h"

namespace mox::internal {
namespace {

ModelSpec perceptron(const Inputs& inputs, ModeKeys) {
  const Tensor hidden = relu(layers::dense(inputs[0], 32, {.name = "hidden"}));
  return ModelSpec{.loss = reduce_mean(square(layers::dense(hidden, 1, {.name = "out"})))};
}

int threads_of(int64_t samples, int64_t columns, bool follows_work) {
  const Team team(2);
  const EnteredTeam entered(team);
  VariableStore store(1);
  ModelCompiler compiler(perceptron, ModeKeys::TRAIN, store, team,
                         {.rules = {}, .team_follows_work = follows_work});
  CompiledModel& model = compiler.for_signature({{DType::kFloat32, {samples, columns}}});
  Array batch(model.signature[0]);
  std::memset(batch.data(), 0, batch.bytes());
  model.instance->run({.components = std::span(&batch, 1)});
  EXPECT_EQ(entered_threads(), 2);
  return model.team.size();
}

TEST(TeamOfPlan, IsOneThreadWhereInstructionsAreTooSmallToShare) {
  EXPECT_EQ(threads_of(32, 20, true), 1);
  EXPECT_EQ(threads_of(4096, 512, true), 2);
}

TEST(TeamOfPlan, IsTheWholeTeamWhereThreadsAreGiven) { EXPECT_EQ(threads_of(32, 20, false), 2); }

}  // namespace
}  // namespace mox::internal
