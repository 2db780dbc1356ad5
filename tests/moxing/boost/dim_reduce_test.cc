// Steps of dimension-reduced training against those of MindSpore's own class and against an independent
// implementation in NumPy (tests/fixtures/make_boost_fixtures.py). The networks here are written out by hand.
#include "moxing/boost/dim_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "tests/moxing/boost/boost_samples.h"
#include "tests/runtime/comm/thread_ranks.h"
#include "tests/support/larger.h"
#include "tests/support/message_of.h"

namespace mox::boost {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Workers kTwoThreads = workers_of(Team(2));

// Two dense layers with tanh between, their loss and its gradient in double. `order`: where the weights of
// the first kernel, the first bias, the second kernel and the second bias begin.
struct SmallNetwork {
  int64_t in, hidden, out;
  std::array<int64_t, 4> order;

  double loss(std::span<const float> w, std::span<const float> x, std::span<const int32_t> y,
              std::span<float> gradient = {}) const {
    const auto at = [&](int which, int64_t i) { return static_cast<double>(w[order[which] + i]); };
    std::vector<double> sums(gradient.size(), 0.0);
    const auto add = [&](int which, int64_t i, double value) { sums[order[which] + i] += value; };
    const auto samples = static_cast<int64_t>(y.size());
    double total = 0;
    std::vector<double> h(static_cast<size_t>(hidden)), z(static_cast<size_t>(out));
    for (int64_t n = 0; n < samples; ++n) {
      const auto sample = x.subspan(static_cast<size_t>(n * in), static_cast<size_t>(in));
      for (int64_t j = 0; j < hidden; ++j) {
        double sum = at(1, j);
        for (int64_t i = 0; i < in; ++i) sum += sample[i] * at(0, i * hidden + j);
        h[j] = std::tanh(sum);
      }
      double largest = -1e300, exponentials = 0;
      for (int64_t c = 0; c < out; ++c) {
        double sum = at(3, c);
        for (int64_t j = 0; j < hidden; ++j) sum += h[j] * at(2, j * out + c);
        z[c] = sum;
        largest = std::max(largest, sum);
      }
      for (double& value : z) exponentials += std::exp(value - largest);
      const auto label = y[n];
      total += std::log(exponentials) + largest - z[label];
      if (gradient.empty()) continue;
      for (int64_t j = 0; j < hidden; ++j) {
        double down = 0;
        for (int64_t c = 0; c < out; ++c) {
          const double dz = (std::exp(z[c] - largest) / exponentials - (c == label)) / samples;
          if (j == 0) add(3, c, dz);
          add(2, j * out + c, h[j] * dz);
          down += dz * at(2, j * out + c);
        }
        down *= 1 - h[j] * h[j];
        add(1, j, down);
        for (int64_t i = 0; i < in; ++i) add(0, i * hidden + j, sample[i] * down);
      }
    }
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(sums[i]);
    return total / samples;
  }
};

Basis basis_of(const Array& rows, Communicator& ranks) {
  Basis basis(rows.shape()[0], rows.shape()[1], ranks.rank(), ranks.size());
  const IndexRange own = basis.own_columns();
  for (int64_t i = 0; i < basis.components(); ++i)
    basis.write(i, own.first,
                rows.rows(i, i + 1).values<float>().subspan(static_cast<size_t>(own.first),
                                                            static_cast<size_t>(own.count)));
  return basis;
}

// A training by hand: weights, and batches one behind the other.
struct Training {
  SmallNetwork network;
  std::vector<float> w;
  std::span<const float> x;
  std::span<const int32_t> y;
  int64_t batch;

  DimReduce::Outcome step(DimReduce& method, int64_t nth, float loss_scale = 1) {
    const auto batches = static_cast<int64_t>(y.size()) / batch, first = nth % batches * batch;
    const auto inputs =
        x.subspan(static_cast<size_t>(first * network.in), static_cast<size_t>(batch * network.in));
    const auto labels = y.subspan(static_cast<size_t>(first), static_cast<size_t>(batch));
    std::vector<float> gradient(w.size());
    const double loss = network.loss(w, inputs, labels, gradient);
    for (float& value : gradient) value *= loss_scale;
    return method.step(FlatArrays({gradient}), 1 / loss_scale, loss, FlatArrays({w}),
                       [&] { return network.loss(w, inputs, labels); });
  }
};

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (size_t i = 0; i < b.size(); ++i)
    largest = test::larger(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}
double largest(std::span<const float> values) {
  return largest_difference(values, std::vector<float>(values.size(), 0.0F));
}

TEST(DimReduceTest, FollowsMindSporesOwnClass) {
  const auto fixture = boost_fixture("boost_steps.npz");
  const Array& weights = fixture.at("w");
  const int64_t steps = weights.shape()[0] - 1, columns = weights.shape()[1];
  const auto row = [&](int64_t i) { return weights.rows(i, i + 1).values<float>(); };
  Training training{{6, 10, 4, {0, 60, 70, 110}},
                    {row(0).begin(), row(0).end()},
                    fixture.at("x").values<float>(),
                    fixture.at("y").values<int32_t>(),
                    32};
  Communicator alone;
  DimReduce method(basis_of(fixture.at("pca"), alone), {}, alone, kTwoThreads);
  ASSERT_EQ(columns, 114);
  for (int64_t t = 0; t < steps; ++t) {
    training.step(method, t);
    ASSERT_LT(largest_difference(training.w, row(t + 1)) / largest(row(t + 1)), 1e-4) << "step " << t;
  }
  EXPECT_EQ(method.counts().steps, 40);
  EXPECT_EQ(method.counts().failed, 8);
}

struct Case {
  const char* mode;
  FailedSearch on_failed_search;
};
void PrintTo(const Case& of, std::ostream* stream) { *stream << of.mode; }

class DimReduceModesTest : public ::testing::TestWithParam<Case> {
 protected:
  DimReduceModesTest() : fixture_(boost_fixture("boost_network.npz")) {}
  Training training() {
    const auto w = fixture_.at("w").values<float>();
    return {{40, 100, 8, {108, 0, 4108, 100}},
            {w.begin(), w.end()},
            fixture_.at("x").values<float>(),
            fixture_.at("y").values<int32_t>(),
            64};
  }
  DimReduce method(Communicator& ranks) {
    return DimReduce(basis_of(fixture_.at("pca"), ranks), {.on_failed_search = GetParam().on_failed_search},
                     ranks, kTwoThreads);
  }
  std::map<std::string, Array> fixture_;
};

TEST_P(DimReduceModesTest, FollowsNumPy) {
  const std::string mode = GetParam().mode;
  const auto lengths = fixture_.at(mode + "_lengths").values<float>();
  const auto expected = fixture_.at(mode + "_w").values<float>();
  Communicator alone;
  DimReduce method = this->method(alone);
  Training training = this->training();
  for (size_t t = 0; t < lengths.size(); ++t) {
    const DimReduce::Outcome outcome =
        training.step(method, static_cast<int64_t>(t), t % 2 == 0 ? 1.0F : 1024.0F);
    ASSERT_EQ(outcome.stop, lengths[t] < 0);
    if (outcome.stop) break;
    ASSERT_FLOAT_EQ(static_cast<float>(outcome.length), lengths[t]) << "step " << t;
  }
  EXPECT_LT(largest_difference(training.w, expected) / largest(expected), 1e-5);
  EXPECT_EQ(method.counts().failed, fixture_.at(mode + "_failed").item());
}

TEST_P(DimReduceModesTest, TheSameBitsOnAnyNumberOfRanks) {
  Communicator alone;
  DimReduce method = this->method(alone);
  Training expected = this->training();
  for (int64_t t = 0; t < 12; ++t) expected.step(method, t);
  const Array residual = method.residual();
  run_ranks(3, [&](Communicator& ranks) {
    DimReduce theirs = this->method(ranks);
    Training training = this->training();
    for (int64_t t = 0; t < 12; ++t) training.step(theirs, t);
    EXPECT_EQ(training.w, expected.w);
    EXPECT_EQ(theirs.save_state(), method.save_state());
    EXPECT_TRUE(std::ranges::equal(theirs.residual().values<float>(), residual.values<float>()));
  });
}

TEST_P(DimReduceModesTest, GoesOnFromASavedStateWithTheSameBits) {
  Communicator alone;
  DimReduce whole = this->method(alone);
  Training expected = this->training();
  std::string state;
  Array residual;
  std::vector<float> w;
  for (int64_t t = 0; t < 20; ++t) {
    if (t == 9) {
      state = whole.save_state();
      residual = whole.residual();
      w = expected.w;
    }
    expected.step(whole, t);
  }
  run_ranks(2, [&](Communicator& ranks) {
    DimReduce rest = this->method(ranks);
    rest.restore(state, residual, "run/checkpoint-9");
    Training training = this->training();
    training.w = w;
    for (int64_t t = 9; t < 20; ++t) training.step(rest, t);
    EXPECT_EQ(training.w, expected.w);
    EXPECT_EQ(rest.save_state(), whole.save_state());
  });
}

INSTANTIATE_TEST_SUITE_P(OnFailedSearch, DimReduceModesTest,
                         ::testing::Values(Case{"skip", FailedSearch::kSkip},
                                           Case{"shrink", FailedSearch::kShrink},
                                           Case{"stop", FailedSearch::kStop}),
                         [](const auto& of) { return std::string(of.param.mode); });

// A bowl in three dimensions, of which the basis has the first two.
struct Bowl {
  std::vector<float> w{1, -2, 0.5F};
  double loss() const { return w[0] * w[0] + 2 * w[1] * w[1] + w[2] * w[2]; }
  DimReduce::Outcome step(DimReduce& method, FunctionRef<double()> trial) {
    std::vector<float> gradient{2 * w[0], 4 * w[1], 2 * w[2]};
    return method.step(FlatArrays({gradient}), 1, loss(), FlatArrays({w}), trial);
  }
};

DimReduce bowl_method(Communicator& ranks, const SearchOptions& options) {
  return DimReduce(basis_of(Array::from<float>({2, 3}, {1, 0, 0, 0, 1, 0}), ranks), options, ranks,
                   kTwoThreads);
}

TEST(DimReduceTest, WhatStopsTheRunChangesNothing) {
  Communicator alone;
  DimReduce method = bowl_method(alone, {.on_failed_search = FailedSearch::kStop});
  Bowl bowl;
  bowl.step(method, [] { return 0.0; });
  const std::vector<float> before = bowl.w;
  const auto state = method.search().state();
  const Array residual = method.residual();
  const DimReduce::Outcome outcome = bowl.step(method, [] { return 1e9; });
  EXPECT_TRUE(outcome.stop);
  EXPECT_EQ(outcome.trials, 2);
  EXPECT_EQ(bowl.w, before);
  EXPECT_EQ(method.search().state(), state);
  EXPECT_TRUE(std::ranges::equal(method.residual().values<float>(), residual.values<float>()));
}

TEST(DimReduceTest, ASkippedStepPutsBackTheSearchAndStillMovesOutside) {
  Communicator alone;
  DimReduce method = bowl_method(alone, {.alpha = 0.5});
  Bowl bowl;
  bowl.step(method, [] { return 1e9; });
  EXPECT_EQ(bowl.w, (std::vector<float>{1, -2, 0}));  // 0.5 - 0.5 * (2 * 0.5)
  EXPECT_TRUE(method.search().state().last_gradient.empty());
  EXPECT_EQ(method.search().state().b, (std::vector<double>{1, 0, 0, 1}));
  EXPECT_THAT(method.counts().accepted, ElementsAre(0, 0));
  EXPECT_EQ(method.counts().failed, 1);
}

TEST(DimReduceTest, ATrialOfNoNumberIsNotAccepted) {
  Communicator alone;
  DimReduce method = bowl_method(alone, {});
  Bowl bowl;
  int trial = 0;
  const auto outcome = bowl.step(method, [&] { return trial++ == 0 ? std::nan("") : -1e9; });
  EXPECT_EQ(outcome.trials, 2);
  EXPECT_DOUBLE_EQ(outcome.length, 0.55);
  EXPECT_THAT(method.counts().accepted, ElementsAre(0, 1));
}

TEST(DimReduceTest, WhatCannotBeIsRefused) {
  Communicator alone;
  for (const SearchOptions& wrong :
       {SearchOptions{.rho = 1}, SearchOptions{.rho = 0}, SearchOptions{.gamma = 1},
        SearchOptions{.alpha = -1}, SearchOptions{.sigma = 0}, SearchOptions{.max_search = 0},
        SearchOptions{.alpha = std::numeric_limits<double>::infinity()}})
    EXPECT_THAT(message_of<InvalidArgument>([&] { bowl_method(alone, wrong); }), HasSubstr("it must be"));
  EXPECT_THAT(message_of<InvalidArgument>([] { failed_search_from_string("retry"); }),
              HasSubstr("skip, shrink or stop"));
  DimReduce method = bowl_method(alone, {});
  Bowl bowl;
  bowl.w[1] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(bowl.step(method, [] { return 0.0; }), NumericError);
}

TEST(DimReduceTest, AStateOfAnotherBasisIsRefused) {
  Communicator alone;
  DimReduce method = bowl_method(alone, {});
  DimReduce other(basis_of(Array::from<float>({2, 3}, {1, 0, 0, 0, 0, 1}), alone), {}, alone, kTwoThreads);
  EXPECT_THAT(message_of<FailedPrecondition>(
                  [&] { other.restore(method.save_state(), method.residual(), "run/c-9"); }),
              AllOf(HasSubstr("run/c-9"), HasSubstr("another basis")));
  EXPECT_THROW(method.restore("{}", method.residual(), "run/c-9"), DataError);
  EXPECT_THROW(method.restore(method.save_state(), Array(DType::kFloat32, {4}), "run/c-9"), DataError);
  auto state = nlohmann::json::parse(method.save_state());
  state["b"] = {1, 2};
  EXPECT_THROW(method.restore(state.dump(), method.residual(), "run/c-9"), DataError);
}

}  // namespace
}  // namespace mox::boost
