// Gradients that are used as soon as they are final, and have no memory of their own.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/exec/plan_instance.h"

namespace mox {
namespace {

using ::testing::Each;

const TensorType kSix{DType::kFloat32, {6}};

SourceLocation this_line(SourceLocation where = SourceLocation::current()) { return where; }

Kernel doubling_kernel(const KernelRequest& request) {
  Kernel kernel = plain_kernel(request.node, [](const KernelArguments& args) {
    for (int i = 0; i < 6; ++i) args.output<float>(0)[i] = 2 * args.input<float>(0)[i];
  });
  kernel.in_place = {{0, 0}};
  return kernel;
}

const Op kDoubled{.name = "test_doubled", .infer = same_as_input, .compile = doubling_kernel};
const Op kSameMemory{.name = "test_same_memory",
                     .infer = same_as_input,
                     .compile = [](const KernelRequest& request) { return alias_kernel(request.node); }};
// Hands over one element after the other: the variable is updated while it reads.
const Op kDoubledInParts{
    .name = "test_doubled_in_parts", .infer = same_as_input, .compile = [](const KernelRequest& request) {
      Kernel kernel = doubling_kernel(request);
      kernel.instantiate_in_parts = []() -> KernelFunction {
        return [](const KernelArguments& args) {
          for (int i = 0; i < 6; ++i) {
            const float value = 2 * args.input<float>(0)[i];
            args.parts->take(i, {&value, 1});
          }
        };
      };
      kernel.implementation_in_parts = "in parts";
      return kernel;
    }};

Tensor doubled(const Tensor& a) { return make_tensor(kDoubled, {a}, {}, this_line()); }
Tensor same_memory(const Tensor& a) { return make_tensor(kSameMemory, {a}, {}, this_line()); }
Tensor doubled_in_parts(const Tensor& a) { return make_tensor(kDoubledInParts, {a}, {}, this_line()); }

// Counts the elements that come in parts.
struct CountedParts : GradientPartListener {
  void expect(size_t, int64_t, int64_t) const override {}
  void take(size_t, int64_t, std::span<const float> part) const override { count += part.size(); }
  mutable size_t count = 0;
};

class GradientsUsedAtOnce : public ::testing::Test {
 protected:
  Tensor variable(const std::string& name) {
    return graph_.add_variable({.name = name, .type = kSix, .initial_value = {}, .where = this_line()});
  }
  // Runs once on ones; returns how many elements came in parts.
  size_t run(const std::vector<GradientOutput>& gradients,
             const std::function<void(size_t, const Array&)>& whole) {
    const auto plan = Plan::compile(graph_, {.fetches = {}, .gradients = gradients, .after_step_values = {}},
                                    {.rules = {}, .convert = {}, .gradients_in_parts = true}, team_);
    PlanInstance instance(plan, team_, [this](std::string_view) { return ones_; });
    const CountedParts parts;
    instance.run(
        {.components = std::span(&ones_, 1)}, [&](size_t index) { whole(index, instance.gradient(index)); },
        parts);
    return parts.count;
  }

  Graph graph_;
  GraphScope scope_{graph_};
  Team team_{1};
  Array ones_ = Array::from<float>({6}, {1, 1, 1, 1, 1, 1});
};

// The last reader of w's gradient could write its own result in its place, which the gradient has from what
// it was computed of.
TEST_F(GradientsUsedAtOnce, NothingTakesTheMemoryOfOneThatWasComputedInPlace) {
  const Tensor w = variable("w"), v = variable("v");
  const Tensor gradient = doubled(doubled(graph_.input(0, kSix, this_line())));
  int calls = 0;
  run({{w, gradient}, {v, doubled(gradient)}}, [&](size_t index, const Array& value) {
    ++calls;
    EXPECT_THAT(value.values<float>(), Each(index == 0 ? 4.0f : 8.0f)) << index;
  });
  EXPECT_EQ(calls, 2);
}

TEST_F(GradientsUsedAtOnce, OneThatIsComputedFromItsOwnVariableComesWhole) {
  const Tensor w = variable("w"), v = variable("v");
  int calls = 0;
  const auto count = [&](size_t, const Array& value) {
    ++calls;
    EXPECT_THAT(value.values<float>(), Each(2.0f));
  };
  EXPECT_EQ(run({{w, doubled_in_parts(v)}}, count), 6u);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(run({{v, doubled_in_parts(v)}}, count), 0u);
  EXPECT_EQ(run({{v, doubled_in_parts(same_memory(v))}}, count), 0u);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace mox
