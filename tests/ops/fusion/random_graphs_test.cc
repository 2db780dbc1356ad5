// Graphs of random ops, compiled in the ways that training uses, against the same graph with nothing fused,
// nothing computed again and every gradient fetched.
//
// Who is told of a gradient may overwrite it, and its variable, at once. Here both are filled with NaN, so
// that whatever still needs one of them shows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "ops/fusion/default_rules.h"
#include "ops/ops.h"
#include "runtime/exec/plan_instance.h"
#include "tests/support/evaluate.h"

namespace mox::test {
namespace {

using Choice = std::function<Tensor()>;

// A model of some twenty random ops on values of one shape.
class RandomModel {
 public:
  // Images, or matrices; with stretches that are computed again, or without.
  RandomModel(uint64_t seed, bool images, bool with_stretches)
      : random_(seed), images_(images), channels_(below(2) == 0 ? 16 : 10) {
    const GraphScope scope(graph);
    for (int i = 0; i < 2; ++i) values_.push_back(graph.input(i, type(), place()));
    for (int i = 0; i < 2; ++i) batch.push_back(random_array(type().shape, seed + static_cast<uint64_t>(i)));
    for (int i = 0; i < 3; ++i) values_.push_back(variable(type().shape, 1));
    const Tensor average = variable(type().shape, 1, false);
    values_.push_back(average);

    std::optional<TraitsScope> stretch;
    for (int i = 0; i < 20; ++i) {
      if (with_stretches && i % 4 == 0) {
        NodeTraits traits;
        if (below(3) > 0) traits.recomputed_stretch = graph.new_stretch();
        stretch.emplace(traits);
      }
      values_.push_back(images_ ? next_image() : next_matrix());
    }
    stretch.reset();

    loss = reduce_mean(square(values_.back()));
    for (int i = 0; i < 4; ++i) loss = loss + reduce_mean(recent() * recent());
    std::vector<Tensor> targets;
    for (const Tensor& candidate : graph.variables())
      if (graph.spec(candidate).trainable) targets.push_back(candidate);
    const std::vector<Tensor> found = mox::gradients(loss, targets);
    for (size_t i = 0; i < targets.size(); ++i)
      if (found[i].defined()) gradients.push_back({targets[i], found[i]});
    std::ranges::stable_sort(gradients, {}, [](const GradientOutput& g) { return g.gradient.node()->id; });
    fetches = {loss, any(), any()};
    if (!gradients.empty() && below(2) == 0) fetches.push_back(gradients[below(gradients.size())].gradient);
    after_step = {{average, average * 0.9f + any() * 0.1f}};
  }

  Graph graph;
  std::vector<Array> batch;
  Tensor loss;
  std::vector<Tensor> fetches;
  std::vector<GradientOutput> gradients;
  std::vector<AfterStepValue> after_step;

  std::map<std::string, Array, std::less<>> initial_values() const {
    std::map<std::string, Array, std::less<>> values;
    for (const Tensor& candidate : graph.variables())
      values[graph.spec(candidate).name] = graph.spec(candidate).initial_value(0);
    return values;
  }

 private:
  static constexpr int64_t kRows = 131, kColumns = 139;
  static SourceLocation place() { return SourceLocation::current(); }

  size_t below(size_t limit) { return random_() % limit; }
  TensorType type() const {
    return {DType::kFloat32, images_ ? Shape{4, channels_, 21, 21} : Shape{kRows, kColumns}};
  }
  // Any value so far; one of the last.
  const Tensor& any() { return values_[below(values_.size())]; }
  const Tensor& recent() { return values_[values_.size() - 1 - below(std::min<size_t>(8, values_.size()))]; }

  Tensor variable(const Shape& shape, float range, bool trainable = true) {
    const uint64_t seed = graph.variables().size() + 100;
    VariableSpec spec;
    spec.name = "v" + std::to_string(seed);
    spec.type = {DType::kFloat32, shape};
    spec.trainable = trainable;
    spec.initial_value = [=](uint64_t) { return random_array(shape, seed, -range, range); };
    spec.where = place();
    return graph.add_variable(std::move(spec));
  }
  // One that is there already, as often as a new one.
  Tensor some_variable(const Shape& shape, float range) {
    std::vector<Tensor> known;
    for (const Tensor& candidate : graph.variables())
      if (candidate.shape() == shape) known.push_back(candidate);
    return known.empty() || below(2) == 0 ? variable(shape, range) : known[below(known.size())];
  }
  // One for each row, of which some come several times.
  Tensor numbers(int64_t limit) {
    Array values(DType::kInt64, {kRows});
    for (int64_t& value : values.values<int64_t>())
      value = static_cast<int64_t>(below(static_cast<size_t>(limit)));
    return graph.constant(values, place());
  }
  // Whole numbers, and what arithmetic makes of them between casts: no gradient passes. A rounding that turns
  // one of them is small beside all.
  static Tensor whole(const Tensor& x) { return cast(x * 5, DType::kInt32); }
  static Tensor numbers_of(const Tensor& x) { return cast(whole(x), DType::kFloat32) * 0.01f; }
  static Tensor halves_of(const Tensor& x) {
    const Tensor half = cast(cast(whole(x), DType::kFloat32) * 0.5f, DType::kInt32);
    return cast(half, DType::kFloat32) * 0.01f;
  }
  Tensor pick(const std::vector<Choice>& choices) { return choices[below(choices.size())](); }

  std::vector<Choice> elementwise() {
    return {
        [this] { return any() + recent(); },
        [this] { return any() - recent(); },
        [this] { return any() * tanh(recent()); },
        [this] { return recent() / (square(any()) + 1); },
        [this] { return tanh(recent()); },
        [this] { return sigmoid(recent()); },
        [this] { return relu(recent()); },
        [this] { return maximum(any(), recent()); },
        [this] { return square(tanh(recent())); },
        [this] { return exp(-square(recent())); },
        [this] { return select(greater(any(), 0.1f), recent(), recent() * 0.5f); },
        [this] { return stop_gradient(any()) * recent() * 0.5f; },
        [this] { return recent() + numbers_of(any()); },
        [this] { return recent() + halves_of(any()); },
        [this] { return select(greater(cast(whole(any()), DType::kFloat32) * 0.3f, 0.5f), recent(), any()); },
        [this] { return dropout(recent(), 0.3, true); }};
  }

  Tensor next_matrix() {
    std::vector<Choice> choices = elementwise();
    const std::vector<Choice> more = {
        [this] {
          return matmul(recent(), some_variable({kColumns, kColumns}, 0.15f));
        },
        [this] {
          return matmul(recent(), some_variable({kColumns, kColumns}, 0.15f), {.transpose_b = true});
        },
        [this] { return matmul(softmax(matmul(recent(), any(), {.transpose_b = true})), recent()); },
        [this] { return bias_add(recent(), some_variable({kColumns}, 1)); },
        [this] { return recent() * some_variable({kColumns}, 1); },
        [this] {
          return recent() + some_variable({kRows, 1}, 1);
        },
        [this] { return recent() * some_variable({}, 1); },
        [this] { return recent() - reduce_mean(any(), {.axes = {1}, .keep_dims = true}); },
        [this] {
          return slice(concat({any(), recent()}, 1), {0, 11}, {kRows, kColumns});
        },
        [this] {
          return concat({slice(any(), {0, 0}, {kRows, 1}), slice(recent(), {0, 1}, {kRows, -1})}, 1);
        },
        [this] {
          return transpose(reshape(recent(), {kColumns, kRows}));
        },
        [this] {
          return reshape(reshape(recent(), {kRows * kColumns}), {kRows, kColumns});
        },
        [this] { return recent() * tanh(reduce_mean(any())); },
        [this] { return recent() - reduce_max(any(), {.axes = {0}, .keep_dims = true}); },
        [this] {
          return recent() + embedding_lookup(some_variable({40, kColumns}, 1), numbers(40));
        },
        [this] { return gather(recent(), numbers(kRows)); },
        [this] {
          const std::vector<Tensor> pieces = split_sizes(recent(), {1, 17, kColumns - 18}, 1);
          return concat({pieces[2], pieces[0], pieces[1]}, 1);
        },
        [this] {
          return slice(pad(recent(), {{1, 0}, {0, 3}}), {0, 2}, {kRows, kColumns});
        },
        [this] {
          return recent() * expand_dims(sparse_softmax_cross_entropy(any(), numbers(kColumns)), 1) * 0.2f;
        },
        [this] { return softmax(recent()) * 20; },
        [this] { return log_softmax(recent()) * 0.2f; },
        [this] {
          return batch_norm(recent(), some_variable({kColumns}, 1), some_variable({kColumns}, 1)).y;
        }};
    choices.insert(choices.end(), more.begin(), more.end());
    return pick(choices);
  }

  Tensor next_image() {
    std::vector<Choice> choices = elementwise();
    const Shape per_channel{channels_};
    const auto filter = [this](int64_t side) {
      return some_variable({channels_, channels_, side, side}, side == 1 ? 0.4f : 0.12f);
    };
    const auto normalised = [=, this](const Tensor& x) {
      return batch_norm(x, some_variable(per_channel, 1), some_variable(per_channel, 1)).y;
    };
    const std::vector<Choice> more = {
        [=, this] { return conv2d(recent(), filter(3)); },
        [=, this] { return conv2d(recent(), filter(1)); },
        [=, this] { return bias_add(conv2d(recent(), filter(3)), some_variable(per_channel, 1)); },
        [=, this] {
          return conv2d(recent(), some_variable({channels_, 1, 3, 3}, 0.4f), {.groups = channels_});
        },
        [=, this] { return relu(normalised(conv2d(recent(), filter(1)))); },
        [=, this] { return relu(normalised(conv2d(recent(), filter(3)))); },
        [=, this] { return relu(any() + normalised(conv2d(recent(), filter(1)))); },
        [=, this] { return relu(normalised(recent()) + normalised(conv2d(any(), filter(1)))); },
        [=, this] { return clip_by_value(normalised(conv2d(recent(), filter(3))), 0, 1.5); },
        [=, this] { return normalised(recent()); },
        [=, this] { return relu(normalised(any())); },
        [=, this] {
          const Tensor first = relu(normalised(conv2d(recent(), filter(3))));
          return relu(normalised(conv2d(first, filter(3)))) + relu(normalised(first)) * 0.5f;
        },
        [=, this] {
          const Tensor half =
              conv2d(recent(), some_variable({24, channels_, 3, 3}, 0.12f), {.strides = {2, 2}});
          const Tensor whole =
              conv2d_transpose(relu(half), some_variable({24, channels_, 3, 3}, 0.12f), {.strides = {2, 2}});
          return slice(whole, {0, 0, 0, 1}, {4, channels_, 21, 21});
        },
        [=, this] {
          return relu(normalised(recent() + conv2d(relu(normalised(conv2d(any(), filter(1)))), filter(3))));
        },
        [=, this] {
          return batch_norm_inference(conv2d(recent(), filter(1)), some_variable(per_channel, 1),
                                      some_variable(per_channel, 1), some_variable(per_channel, 1),
                                      square(some_variable(per_channel, 1)) + 0.5f);
        },
        [=, this] { return recent() * sigmoid(global_avg_pool(any())); },
        [=, this] {
          return recent() * some_variable({channels_, 1, 1}, 1);
        },
        [this] {
          return max_pool(recent(), {.window = {3, 3}, .strides = {1, 1}, .padding = Padding::kSame});
        },
        [this] {
          return avg_pool(recent(), {.window = {3, 3}, .strides = {1, 1}, .padding = Padding::kSame});
        },
        [this] {
          return slice(concat({any(), recent()}, 1), {0, 3, 0, 0}, {4, channels_, 21, 21});
        }};
    choices.insert(choices.end(), more.begin(), more.end());
    choices.insert(choices.end(), more.begin(), more.end());
    return pick(choices);
  }

  std::mt19937_64 random_;
  const bool images_;
  const int64_t channels_;
  std::vector<Tensor> values_;
};

struct StepOutcome {
  std::vector<Array> fetches, gradients, after_step;
};

void spoil(Array array) { std::ranges::fill(array.values<float>(), kNaN); }

// Takes the parts of gradients and spoils the same elements of their variables.
class SpoilingParts : public GradientPartListener {
 public:
  SpoilingParts(std::vector<Array>& gradients, std::vector<Array>& variables)
      : gradients_(gradients), variables_(variables) {}
  void expect(size_t, int64_t, int64_t) const override {}
  void take(size_t index, int64_t first, std::span<const float> part) const override {
    const auto at = static_cast<size_t>(first);
    std::ranges::copy(part, gradients_[index].values<float>().subspan(at).begin());
    std::ranges::fill(variables_[index].values<float>().subspan(at, part.size()), kNaN);
  }

 private:
  std::vector<Array>& gradients_;
  std::vector<Array>& variables_;
};

// Two steps from the same variables; the outcome of the second.
StepOutcome train(const RandomModel& model, CompileOptions options, bool in_parts) {
  const Team team(1);
  const EnteredTeam entered(team);
  options.gradients_in_parts = in_parts;
  const auto plan = Plan::compile(
      model.graph,
      {.fetches = model.fetches, .gradients = model.gradients, .after_step_values = model.after_step},
      options, team);
  auto store = model.initial_values();
  PlanInstance instance(plan, team, [&](std::string_view name) { return store.find(name)->second; });
  StepOutcome outcome;
  std::vector<Array> variables;
  for (const GradientOutput& gradient : model.gradients) {
    outcome.gradients.emplace_back(gradient.gradient.type());
    variables.push_back(store.find(model.graph.spec(gradient.variable).name)->second);
  }
  const SpoilingParts parts(outcome.gradients, variables);
  for (int step = 0; step < 2; ++step) {
    for (const auto& [name, value] : model.initial_values())
      std::ranges::copy(value.values<float>(), store.find(name)->second.values<float>().begin());
    const auto listener = [&](size_t index) {
      outcome.gradients[index] = instance.gradient(index).clone();
      spoil(instance.gradient(index));
      spoil(variables[index]);
    };
    const StepInputs inputs{.components = model.batch, .seed = 5, .step = 7};
    in_parts ? instance.run(inputs, listener, parts) : instance.run(inputs, listener);
  }
  for (size_t i = 0; i < model.fetches.size(); ++i) outcome.fetches.push_back(instance.fetched(i).clone());
  for (size_t i = 0; i < model.after_step.size(); ++i)
    outcome.after_step.push_back(instance.after_step_value(i).clone());
  return outcome;
}

// Everything fetched.
StepOutcome expected_outcome(const RandomModel& model, const CompileOptions& options) {
  std::vector<Tensor> all = model.fetches;
  for (const GradientOutput& gradient : model.gradients) all.push_back(gradient.gradient);
  for (const AfterStepValue& after : model.after_step) all.push_back(after.value);
  const std::vector<Array> values = mox::evaluate(
      all, model.batch, {.variables = model.initial_values(), .seed = 5, .step = 7, .compile = options});
  auto next = values.begin();
  const auto take = [&](size_t count) {
    const auto first = std::exchange(next, next + static_cast<std::ptrdiff_t>(count));
    return std::vector<Array>(first, next);
  };
  StepOutcome outcome;
  outcome.fetches = take(model.fetches.size());
  outcome.gradients = take(model.gradients.size());
  outcome.after_step = take(model.after_step.size());
  return outcome;
}

// Rounding differs, and may turn a relu's mask here and there; what is wrong is farther off.
void expect_alike(const std::vector<Array>& actual, const std::vector<Array>& expected, double tolerance,
                  const char* what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    double distance = 0, length = 0;
    const auto a = actual[i].values<float>(), e = expected[i].values<float>();
    for (size_t k = 0; k < e.size(); ++k) {
      distance += std::pow(static_cast<double>(a[k]) - e[k], 2);
      length += std::pow(static_cast<double>(e[k]), 2);
    }
    EXPECT_LE(std::sqrt(distance), tolerance * std::sqrt(length) + 1e-7) << what << " " << i;
  }
}

void expect_alike(const StepOutcome& actual, const StepOutcome& expected, double tolerance = 0.01) {
  expect_alike(actual.fetches, expected.fetches, tolerance, "fetch");
  expect_alike(actual.gradients, expected.gradients, tolerance, "gradient");
  expect_alike(actual.after_step, expected.after_step, tolerance, "after the step");
}

class RandomGraphs : public ::testing::TestWithParam<int> {};

TEST_P(RandomGraphs, GiveTheSameHoweverTheyAreCompiled) {
  for (const bool images : {false, true})
    for (const bool with_stretches : {false, true}) {
      SCOPED_TRACE(std::string(images ? "images" : "matrices") + (with_stretches ? ", computed again" : ""));
      const RandomModel model(static_cast<uint64_t>(GetParam()), images, with_stretches);
      const StepOutcome expected = expected_outcome(model, compile_options_without_rules());
      for (const bool in_parts : {false, true})
        for (const auto recomputed : {RecomputedNormalisations::kNone, RecomputedNormalisations::kCheap,
                                      RecomputedNormalisations::kAll}) {
          SCOPED_TRACE(std::string(in_parts ? "in parts" : "whole") +
                       fmt::format(", recomputation {}", static_cast<int>(recomputed)));
          expect_alike(
              train(model, {.rules = default_rules({.recomputed = recomputed}), .convert = convert_layout},
                    in_parts),
              expected);
        }
      // Without gradients other fusions apply: nothing else reads what a convolution gave.
      const std::vector<Tensor> values(model.fetches.begin(), model.fetches.begin() + 3);
      expect_alike(
          mox::evaluate(
              values, model.batch,
              {.variables = model.initial_values(), .seed = 5, .step = 7, .compile = compile_options()}),
          {expected.fetches.begin(), expected.fetches.begin() + 3}, 0.01, "value");
      if (bfloat16_support() == BFloat16Support::kNone) continue;
      SCOPED_TRACE("bfloat16");
      const CompileOptions low{.rules = default_rules({.precision = Precision::kBFloat16}),
                               .convert = convert_layout};
      const StepOutcome low_expected = expected_outcome(model, low);
      for (const bool in_parts : {false, true}) expect_alike(train(model, low, in_parts), low_expected, 0.1);
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphs, ::testing::Range(0, 40));

}  // namespace
}  // namespace mox::test
