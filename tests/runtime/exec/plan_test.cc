// The compiler and the plan, on ops that exist only here: what they decide must not depend on which
// ops there are.
#include "runtime/exec/plan.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/exec/evaluate.h"
#include "runtime/exec/plan_instance.h"
#include "tests/support/message_of.h"

namespace mox {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SourceLocation here(SourceLocation where = SourceLocation::current()) { return where; }

Kernel elementwise_kernel(const KernelRequest& request, float (*function)(float, float)) {
  const int64_t count = request.node.outputs[0].shape.elements();
  const bool binary = request.node.inputs.size() == 2;
  Kernel kernel = plain_kernel(request.node, [=](const KernelArguments& args) {
    for (int64_t i = 0; i < count; ++i)
      args.output<float>(0)[i] = function(args.input<float>(0)[i], args.input<float>(binary ? 1 : 0)[i]);
  });
  kernel.in_place = {{0, 0}};
  return kernel;
}

const Op kAdd{.name = "test_add", .infer = same_as_input, .compile = [](const KernelRequest& request) {
                return elementwise_kernel(request, [](float a, float b) { return a + b; });
              }};
const Op kDouble{.name = "test_double", .infer = same_as_input, .compile = [](const KernelRequest& request) {
                   return elementwise_kernel(request, [](float a, float) { return 2 * a; });
                 }};
const Op kView{.name = "test_view", .infer = same_as_input, .compile = [](const KernelRequest& request) {
                 return alias_kernel(request.node);
               }};
// Works on matrices that lie column by column only.
const Op kColumns{
    .name = "test_columns", .infer = same_as_input, .compile = [](const KernelRequest& request) {
      const TensorType& type = request.node.outputs[0];
      Kernel kernel = elementwise_kernel(request, [](float a, float) { return a + 1; });
      const Layout columns = Layout::blocked(type, {type.shape[0], type.shape[1]}, {1, type.shape[0]}, {});
      kernel.input_layouts = kernel.output_layouts = {columns};
      return kernel;
    }};

Tensor add(const Tensor& a, const Tensor& b) { return make_tensor(kAdd, {a, b}, {}, here()); }
Tensor twice(const Tensor& a) { return make_tensor(kDouble, {a}, {}, here()); }
Tensor view(const Tensor& a) { return make_tensor(kView, {a}, {}, here()); }
Tensor columns(const Tensor& a) { return make_tensor(kColumns, {a}, {}, here()); }

// Transposes between row and column order.
Kernel convert(const TensorType& type, const Layout& from, const Layout& to, const Team&) {
  Kernel kernel;
  kernel.input_layouts = {from};
  kernel.output_layouts = {to};
  const int64_t rows = type.shape[0], width = type.shape[1];
  const bool to_columns = from.is_plain();
  kernel.instantiate = [=]() -> KernelFunction {
    return [=](const KernelArguments& args) {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < width; ++c) {
          const int64_t by_row = r * width + c, by_column = c * rows + r;
          args.output<float>(0)[to_columns ? by_column : by_row] =
              args.input<float>(0)[to_columns ? by_row : by_column];
        }
    };
  };
  return kernel;
}

class PlanTest : public ::testing::Test {
 protected:
  Tensor input(int component) { return graph_.input(component, {DType::kFloat32, {2, 3}}, here()); }
  Tensor variable(const std::string& name, float value) {
    return graph_.add_variable({.name = name,
                                .type = {DType::kFloat32, {2, 3}},
                                .initial_value =
                                    [value](uint64_t) {
                                      Array array(DType::kFloat32, {2, 3});
                                      for (float& v : array.values<float>()) v = value;
                                      return array;
                                    },
                                .where = here()});
  }
  std::shared_ptr<const Plan> compile(const PlanRequest& request) {
    return Plan::compile(graph_, request, {.rules = {}, .convert = convert}, team_);
  }
  std::unique_ptr<PlanInstance> instantiate(const std::shared_ptr<const Plan>& plan) {
    return std::make_unique<PlanInstance>(plan, team_, [this](std::string_view name) {
      auto& array = store_[std::string(name)];
      if (!array.defined()) array = graph_.spec(graph_.find_variable(name)).initial_value(0);
      return array;
    });
  }
  static std::vector<float> values(const Array& array) {
    return {array.values<float>().begin(), array.values<float>().end()};
  }

  Graph graph_;
  GraphScope scope_{graph_};
  Team team_{1};
  std::map<std::string, Array> store_;
  const Array batch_ = Array::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
};

TEST_F(PlanTest, DropsWhatNobodyNeeds) {
  const Tensor x = input(0);
  twice(twice(x));
  const auto plan = compile({.fetches = {twice(x)}, .gradients = {}, .after_step_values = {}});
  EXPECT_EQ(plan->statistics().instructions, 1u);
}

TEST_F(PlanTest, EvaluateLeavesTheThreadItsTeam) {
  const EnteredTeam entered(Team(3));
  const Tensor fetched = twice(input(0));
  evaluate(std::span(&fetched, 1), std::span(&batch_, 1), {.threads = 1});
  EXPECT_EQ(entered_threads(), 3);
}

TEST_F(PlanTest, SharesEqualNodesAndFoldsConstants) {
  const Tensor x = input(0);
  const Tensor constant = graph_.constant(batch_, here());
  const Tensor sum = add(add(twice(x), twice(x)), twice(twice(constant)));
  const auto plan = compile({.fetches = {sum}, .gradients = {}, .after_step_values = {}});
  EXPECT_EQ(plan->statistics().instructions, 3u) << plan->describe();  // one doubling of x, two additions
  auto instance = instantiate(plan);
  instance->run({.components = std::span(&batch_, 1)});
  EXPECT_THAT(values(instance->fetched(0)), ElementsAre(8, 16, 24, 32, 40, 48));
}

TEST_F(PlanTest, WhatIsMadeFromNothingIsFoldedIfItIsSmall) {
  static const Op ones_of_shape{
      .name = "test_ones",
      .infer =
          [](const OpCall& call) {
            return std::vector<TensorType>{
                {DType::kFloat32, Shape(call.attributes.get<std::vector<int64_t>>("shape"))}};
          },
      .compile =
          [](const KernelRequest& request) {
            const int64_t count = request.node.outputs[0].shape.elements();
            return plain_kernel(request.node, [count](const KernelArguments& args) {
              std::fill_n(args.output<float>(0), count, 1.0f);
            });
          }};
  auto ones_tensor = [&](int64_t rows) {
    return make_node(ones_of_shape, std::vector<Tensor>{}, {{"shape", std::vector<int64_t>{rows, 3}}}, here())
        .output();
  };
  EXPECT_EQ(
      compile({.fetches = {add(input(0), twice(ones_tensor(2)))}, .gradients = {}, .after_step_values = {}})
          ->statistics()
          .instructions,
      1u);
  EXPECT_EQ(compile({.fetches = {twice(ones_tensor(100000))}, .gradients = {}, .after_step_values = {}})
                ->statistics()
                .instructions,
            2u);
}

TEST_F(PlanTest, AChainRunsInOneBuffer) {
  Tensor x = input(0);
  for (int i = 0; i < 5; ++i) x = twice(x);
  const auto plan = compile({.fetches = {twice(x)}, .gradients = {}, .after_step_values = {}});
  EXPECT_EQ(plan->statistics().arena_bytes, 64u);
}

TEST_F(PlanTest, TheBatchAndTheVariablesAreNeverOverwritten) {
  const Tensor w = variable("w", 7);
  const auto plan =
      compile({.fetches = {twice(input(0)), twice(w), view(w)}, .gradients = {}, .after_step_values = {}});
  auto instance = instantiate(plan);
  const Array batch = batch_.clone();
  instance->run({.components = std::span(&batch, 1)});
  EXPECT_EQ(values(batch), values(batch_));
  EXPECT_EQ(values(store_["w"])[0], 7);
  EXPECT_EQ(values(instance->fetched(1))[0], 14);
  EXPECT_EQ(values(instance->fetched(2))[0], 7);
}

TEST_F(PlanTest, AFetchedValueSurvivesItsReaders) {
  const Tensor y = twice(input(0));
  const Tensor z = twice(view(y));  // would run in place in y's memory if nobody wanted y
  const auto plan = compile({.fetches = {y, z, y}, .gradients = {}, .after_step_values = {}});
  auto instance = instantiate(plan);
  instance->run({.components = std::span(&batch_, 1)});
  EXPECT_EQ(values(instance->fetched(0))[0], 2);
  EXPECT_EQ(values(instance->fetched(1))[0], 4);
  EXPECT_EQ(values(instance->fetched(2))[0], 2);
}

TEST_F(PlanTest, NamesWhatAStepGivesThatIsTooLarge) {
  const Tensor x = graph_.input(0, {DType::kFloat32, {int64_t{1} << 48}}, here());
  const auto plan = compile({.fetches = {twice(x)}, .gradients = {}, .after_step_values = {}});
  const std::string said = message_of<OutOfMemory>([&] { instantiate(plan); });
  EXPECT_THAT(said, HasSubstr("what a step gives: float32[281474976710656]: an array takes "));
  EXPECT_THAT(said, HasSubstr("put less into output_info and log_info"));
}

TEST_F(PlanTest, ConvertsLayoutsWhereKernelsDisagreeAndOnlyThere) {
  const Tensor y = columns(columns(input(0)));
  const auto plan = compile({.fetches = {twice(y), columns(y)}, .gradients = {}, .after_step_values = {}});
  EXPECT_EQ(plan->statistics().conversions, 3u) << plan->describe();  // in, for twice, for the fetch
  auto instance = instantiate(plan);
  instance->run({.components = std::span(&batch_, 1)});
  EXPECT_THAT(values(instance->fetched(0)), ElementsAre(6, 8, 10, 12, 14, 16));
  EXPECT_THAT(values(instance->fetched(1)), ElementsAre(4, 5, 6, 7, 8, 9));
}

TEST_F(PlanTest, ConvertsConstantsOnce) {
  const Tensor y = add(columns(graph_.constant(batch_, here())), input(0));
  const auto plan = compile({.fetches = {y}, .gradients = {}, .after_step_values = {}});
  EXPECT_EQ(plan->statistics().conversions, 1u)
      << plan->describe();  // back to plain; the constant itself at compile time
  auto instance = instantiate(plan);
  instance->run({.components = std::span(&batch_, 1)});
  EXPECT_THAT(values(instance->fetched(0)), ElementsAre(3, 5, 7, 9, 11, 13));
}

TEST_F(PlanTest, TellsOfAGradientWhenItIsFinalAndItsVariableIsFree) {
  const Tensor w = variable("w", 1), v = variable("v", 2);
  const Tensor gradient_w = twice(input(0));
  const Tensor gradient_v = twice(gradient_w);
  const Tensor last_reader_of_w = add(w, twice(gradient_v));
  const auto plan = compile({.fetches = {last_reader_of_w},
                             .gradients = {{w, gradient_w}, {v, gradient_v}},
                             .after_step_values = {}});
  auto instance = instantiate(plan);
  std::vector<size_t> order;
  instance->run({.components = std::span(&batch_, 1)}, [&](size_t index) {
    order.push_back(index);
    if (index == 0) {
      EXPECT_EQ(values(instance->gradient(0))[0], 2);
    }
    if (index == 0)
      for (float& value : store_["w"].values<float>()) value = 100;  // what an optimizer would do
  });
  EXPECT_THAT(order, ElementsAre(1, 0));
  EXPECT_EQ(values(instance->fetched(0))[0], 9) << "w was read before it was updated";
}

// What sums gradients over replicas writes into their memory while the backward pass goes on.
TEST_F(PlanTest, TellsOfAGradientWhenNothingReadsItAnyMore) {
  const Tensor w = variable("w", 1), v = variable("v", 2), u = variable("u", 3), last = variable("last", 4);
  const Tensor shared = twice(input(0));
  const Tensor later = twice(shared);
  const auto plan = compile({.fetches = {},
                             .gradients = {{w, shared}, {v, shared}, {u, later}, {last, twice(later)}},
                             .after_step_values = {}});
  auto instance = instantiate(plan);
  std::vector<size_t> order;
  std::vector<float> found;
  instance->run({.components = std::span(&batch_, 1)}, [&](size_t index) {
    order.push_back(index);
    found.push_back(values(instance->gradient(index))[0]);
    Array gradient = instance->gradient(index);
    for (float& value : gradient.values<float>()) value = 1000;
  });
  EXPECT_THAT(order, ElementsAre(1, 0, 2, 3)) << "the copy stands right behind what it copies";
  EXPECT_THAT(found, ElementsAre(2, 2, 4, 8));
}

// Takes whole gradients alone.
struct NoParts : GradientPartListener {
  void expect(size_t, int64_t, int64_t) const override { ADD_FAILURE() << "no kernel here gives parts"; }
  void take(size_t, int64_t, std::span<const float>) const override {
    ADD_FAILURE() << "no kernel here gives parts";
  }
};

TEST_F(PlanTest, GradientsThatAreUsedAtOnceShareMemory) {
  constexpr int kCount = 12;
  std::vector<GradientOutput> gradients;
  Tensor x = input(0);
  for (int i = 0; i < kCount; ++i) {
    const Tensor w = variable(std::string("w") + static_cast<char>('a' + i), 1);
    x = columns(view(twice(x)));  // not in place, for it is converted
    gradients.push_back({w, x});
  }
  const PlanRequest request{.fetches = {}, .gradients = gradients, .after_step_values = {}};
  const auto kept = compile(request);
  EXPECT_EQ(kept->statistics().gradient_bytes, kCount * 24u);
  const auto plan =
      Plan::compile(graph_, request, {.rules = {}, .convert = convert, .gradients_in_parts = true}, team_);
  EXPECT_EQ(plan->statistics().gradient_bytes, 0u);
  EXPECT_LE(plan->statistics().arena_bytes, kept->statistics().arena_bytes + 2 * 64);
  auto expected = instantiate(kept);
  expected->run({.components = std::span(&batch_, 1)});
  auto instance = instantiate(plan);
  std::vector<size_t> order;
  instance->run(
      {.components = std::span(&batch_, 1)},
      [&](size_t index) {
        order.push_back(index);
        EXPECT_EQ(values(instance->gradient(index)), values(expected->gradient(index))) << index;
      },
      NoParts());
  EXPECT_EQ(order.size(), static_cast<size_t>(kCount));
}

// The instruction after which a gradient may be used reads it for the last time, and could write its own
// result in its place.
TEST_F(PlanTest, NothingTakesTheMemoryOfAGradientBeforeItIsUsed) {
  const Tensor w = variable("w", 1);
  const Tensor gradient = twice(input(0));
  const Tensor result = twice(add(gradient, w));
  const auto plan =
      Plan::compile(graph_, {.fetches = {result}, .gradients = {{w, gradient}}, .after_step_values = {}},
                    {.rules = {}, .convert = convert, .gradients_in_parts = true}, team_);
  auto instance = instantiate(plan);
  int calls = 0;
  instance->run(
      {.components = std::span(&batch_, 1)},
      [&](size_t) {
        ++calls;
        EXPECT_THAT(values(instance->gradient(0)), ElementsAre(2, 4, 6, 8, 10, 12));
      },
      NoParts());
  EXPECT_EQ(calls, 1);
}

TEST_F(PlanTest, KnowsTheLeastMemoryThatAnArenaCouldHave) {
  const Tensor x = input(0);
  const auto plan =
      compile({.fetches = {add(columns(twice(x)), twice(x))}, .gradients = {}, .after_step_values = {}});
  EXPECT_GT(plan->statistics().live_bytes, 0u);
  EXPECT_LE(plan->statistics().live_bytes, plan->statistics().arena_bytes);
  EXPECT_THAT(plan->describe(), HasSubstr("live at once, first in instruction"));
}

TEST_F(PlanTest, TwoGradientsThatAreOneTensorHaveBuffersOfTheirOwn) {
  const Tensor w = variable("w", 1), v = variable("v", 2);
  const Tensor gradient = twice(input(0));
  const auto plan =
      compile({.fetches = {}, .gradients = {{w, gradient}, {v, gradient}}, .after_step_values = {}});
  auto instance = instantiate(plan);
  instance->run({.components = std::span(&batch_, 1)});
  EXPECT_NE(instance->gradient(0).data(), instance->gradient(1).data());
  EXPECT_EQ(values(instance->gradient(0)), values(instance->gradient(1)));
}

TEST_F(PlanTest, GradientsLieInOneBlockWithZerosBetween) {
  const Tensor w = variable("w", 1), v = variable("v", 2);
  const auto plan =
      compile({.fetches = {}, .gradients = {{w, twice(input(0))}, {v, input(0)}}, .after_step_values = {}});
  auto instance = instantiate(plan);
  instance->run({.components = std::span(&batch_, 1)});
  const std::span<float> block = instance->gradient_block();
  ASSERT_EQ(block.size(), 32u);
  EXPECT_EQ(instance->gradient_offset(1), 16);
  EXPECT_EQ(instance->gradient(1).values<float>().data(), block.data() + 16);
  EXPECT_EQ(std::vector<float>(block.begin(), block.begin() + 6), values(instance->gradient(0)));
  EXPECT_EQ(std::vector<float>(block.begin() + 16, block.begin() + 22), values(instance->gradient(1)));
  EXPECT_EQ(std::count(block.begin() + 6, block.begin() + 16, 0.0F), 10);
  EXPECT_EQ(std::count(block.begin() + 22, block.end(), 0.0F), 10);
}

TEST_F(PlanTest, AGradientThatIsAVariableItselfIsToldOf) {
  const Tensor w = variable("w", 3), v = variable("v", 4);
  const auto plan = compile({.fetches = {}, .gradients = {{w, v}}, .after_step_values = {}});
  auto instance = instantiate(plan);
  int told = 0;
  instance->run({}, [&](size_t) { ++told; });
  EXPECT_EQ(told, 1);
  EXPECT_EQ(values(instance->gradient(0))[0], 4);
}

TEST_F(PlanTest, UpdatesAreAppliedWhenAsked) {
  const Tensor w = variable("w", 3);
  const auto plan = compile({.fetches = {}, .gradients = {}, .after_step_values = {{w, add(w, input(0))}}});
  auto instance = instantiate(plan);
  instance->run({.components = std::span(&batch_, 1)});
  EXPECT_EQ(values(store_["w"])[0], 3);
  ASSERT_EQ(instance->after_step_count(), 1u);
  EXPECT_THAT(values(instance->after_step_value(0)), ElementsAre(4, 5, 6, 7, 8, 9));
  EXPECT_EQ(instance->after_step_variable(0).data(), store_["w"].data());
  instance->take_after_step_values();
  EXPECT_THAT(values(store_["w"]), ElementsAre(4, 5, 6, 7, 8, 9));
}

TEST_F(PlanTest, RefusesABatchOfAnotherShape) {
  auto instance =
      instantiate(compile({.fetches = {twice(input(0))}, .gradients = {}, .after_step_values = {}}));
  const Array wrong(DType::kFloat32, {3, 3});
  try {
    instance->run({.components = std::span(&wrong, 1)});
    FAIL() << "accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("float32[2, 3], got float32[3, 3]"));
  }
  EXPECT_THROW(instance->run({}), InvalidArgument);
}

TEST_F(PlanTest, TheFingerprintFollowsTheModel) {
  const Tensor x = input(0);
  const auto one = compile({.fetches = {twice(x)}, .gradients = {}, .after_step_values = {}});
  const auto same = compile({.fetches = {twice(x)}, .gradients = {}, .after_step_values = {}});
  const auto other = compile({.fetches = {twice(twice(x))}, .gradients = {}, .after_step_values = {}});
  EXPECT_NE(one->fingerprint(), other->fingerprint());
  EXPECT_THAT(one->describe(), HasSubstr("test_double"));
  EXPECT_EQ(one->statistics().instructions, same->statistics().instructions);
}

TEST_F(PlanTest, EvaluateRunsAGraphOnce) {
  const Tensor w = variable("w", 1);
  const std::vector<Tensor> fetches = {add(input(0), w)};
  EXPECT_THAT(
      values(evaluate(fetches, std::span(&batch_, 1), {.compile = {.rules = {}, .convert = convert}})[0]),
      ElementsAre(2, 3, 4, 5, 6, 7));
}

}  // namespace
}  // namespace mox
