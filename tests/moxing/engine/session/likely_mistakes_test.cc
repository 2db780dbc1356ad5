// Models that train without an error and learn something else than was meant: a warning names the line.
#include <gmock/gmock.h>

#include <algorithm>

#include "moxing/layers/layers.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LikelyMistakes : public SmallRun {
 protected:
  using MakeLoss = std::function<Tensor(const Tensor& x, const Tensor& y)>;

  // What a run of two steps says whose loss is made of x, float32 [2, 1], and y, int32 [2].
  std::string said_of(const MakeLoss& make) {
    RunSpec s = spec();
    s.log_dir = fresh_directory("likely_mistakes");
    s.inter_mode = ModeKeys::EVAL;
    s.max_number_of_steps = 2;
    s.input_fn = [](ModeKeys mode) {
      const bool trains = mode == ModeKeys::TRAIN;
      const Dataset data = Dataset::from_arrays(
          {Array(DType::kFloat32, {trains ? 5 : 3, 1}), Array(DType::kInt32, {trains ? 5 : 3})});
      return trains ? data.repeat() : data.map([](const Element& e) { return e; });
    };
    s.model_fn = [&](const Inputs& in, ModeKeys) {
      const Tensor loss = make(in[0], in[1]);
      return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
    };
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    run_or_throw(s);
    return testing::internal::GetCapturedStderr();
  }
  static Tensor outputs(const Tensor& x, int64_t units) {
    return matmul(x, get_variable("w", {1, units}, zeros())) + get_variable("b", {units}, zeros());
  }
  static Tensor as_float(const Tensor& y) { return cast(y, DType::kFloat32); }
};

TEST_F(LikelyMistakes, ALossOverAllPairsOfSamples) {
  const std::string text = said_of(
      [](const Tensor& x, const Tensor& y) { return reduce_mean(square(outputs(x, 1) - as_float(y))); });
  EXPECT_THAT(text, AllOf(HasSubstr("sub (session/likely_mistakes_test.cc:"), HasSubstr("[2] and [2, 1]"),
                          HasSubstr("every sample of the batch with every other one")));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  EXPECT_EQ(said_of([](const Tensor& x, const Tensor& y) {
              return mean_squared_error(squeeze(outputs(x, 1), {1}), as_float(y));
            }),
            "");
}

TEST_F(LikelyMistakes, ProbabilitiesInThePlaceOfLogits) {
  const std::string text = said_of([](const Tensor& x, const Tensor& y) {
    return reduce_mean(sparse_softmax_cross_entropy(softmax(outputs(x, 3)), y));
  });
  EXPECT_THAT(text, AllOf(HasSubstr("cross entropy at session/likely_mistakes_test.cc:"),
                          HasSubstr("what softmax has made of them")));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  EXPECT_THAT(said_of([](const Tensor& x, const Tensor& y) {
                const Tensor p = squeeze(sigmoid(outputs(x, 1)), {1});
                return reduce_mean(sigmoid_cross_entropy(p, as_float(y)));
              }),
              HasSubstr("what sigmoid has made of them"));
  EXPECT_EQ(said_of([](const Tensor& x, const Tensor& y) {
              return reduce_mean(sparse_softmax_cross_entropy(outputs(x, 3), y));
            }),
            "");
}

TEST_F(LikelyMistakes, ImagesWithTheirChannelsLast) {
  const auto said_of_images = [&](const Shape& image, std::array<int64_t, 2> window) {
    RunSpec s = spec();
    s.log_dir = fresh_directory("likely_mistakes");
    s.max_number_of_steps = 1;
    s.input_fn = [&](ModeKeys) {
      return Dataset::from_arrays({Array(DType::kFloat32, {4, image.elements()})}).repeat();
    };
    s.model_fn = [&](const Inputs& in, ModeKeys) {
      const Tensor images = reshape(in[0] * (1.0F / 255), {in[0].shape()[0], image[0], image[1], image[2]});
      return ModelSpec{.loss = reduce_mean(square(layers::conv2d(images, 2, window)))};
    };
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    run_or_throw(s);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said_of_images({28, 28, 1}, {5, 5}),
              AllOf(HasSubstr("the convolution at session/likely_mistakes_test.cc:"),
                    HasSubstr("28 channels of 28 x 1 pixels"), HasSubstr("transpose(x, {0, 3, 1, 2})")));
  EXPECT_THAT(said_of_images({12, 16, 3}, {3, 3}), HasSubstr("12 channels of 16 x 3 pixels"));
  EXPECT_EQ(said_of_images({3, 12, 16}, {3, 3}), "");
  EXPECT_EQ(said_of_images({1, 28, 28}, {5, 5}), "");
  EXPECT_EQ(said_of_images({28, 28, 1}, {5, 1}), "") << "in one dimension";
}

// Of 96 samples in batches of eight, whose labels are `label` of their number.
class LikelyMistakesInLabels : public SmallRun {
 protected:
  std::string said_of(const std::function<int(int)>& label, int64_t shuffled, bool is_sigmoid) {
    Array x(DType::kFloat32, {96, 1}), y(DType::kInt32, {96});
    for (int i = 0; i < 96; ++i) {
      x.values<float>()[i] = static_cast<float>(i) / 96;
      y.values<int32_t>()[i] = label(i);
    }
    RunSpec s = spec();
    s.log_dir = fresh_directory("likely_mistakes_in_labels");
    s.batch_size = 8;
    s.max_number_of_steps = 12;
    s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.01});
    s.input_fn = [&](ModeKeys) {
      const Dataset data = Dataset::from_arrays({x, y});
      return (shuffled > 0 ? data.shuffle(shuffled) : data).repeat();
    };
    s.model_fn = [&](const Inputs& in, ModeKeys) {
      const Tensor logits = matmul(in[0], get_variable("w", {1, is_sigmoid ? 1 : 3}, zeros()));
      const Tensor losses = is_sigmoid
                                ? sigmoid_cross_entropy(squeeze(logits, {1}), cast(in[1], DType::kFloat32))
                                : sparse_softmax_cross_entropy(logits, in[1]);
      const Tensor loss = reduce_mean(losses);
      return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
    };
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    run_or_throw(s);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(LikelyMistakesInLabels, OneClassAfterAnother) {
  const auto sorted = [](int i) { return i / 32; };
  const std::string text = said_of(sorted, 0, false);
  EXPECT_THAT(text, AllOf(HasSubstr("batches have samples of one class alone"),
                          HasSubstr("session/likely_mistakes_test.cc:"), HasSubstr(".shuffle(n)")));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  EXPECT_THAT(said_of(sorted, 4, false), HasSubstr("batches have samples of one class alone"))
      << "too little";
  EXPECT_THAT(said_of([](int i) { return i / 48; }, 0, true), HasSubstr("of one class alone"));
  EXPECT_EQ(said_of(sorted, 96, false), "");
  EXPECT_EQ(said_of([](int i) { return i % 3; }, 0, false), "");
  // Of a rare class no batch is made.
  EXPECT_EQ(said_of([](int i) { return i % 48 == 5 ? 1 : 0; }, 0, false), "");
}

TEST_F(LikelyMistakesInLabels, NumbersThatAreNoProbabilities) {
  for (const int least : {-1, 1}) {
    const std::string text =
        said_of([&](int i) { return i % 2 == 0 ? least : least + 1 + (least < 0); }, 0, true);
    EXPECT_THAT(text,
                AllOf(HasSubstr("the labels of sigmoid_cross_entropy at session/likely_mistakes_test.cc:"),
                      HasSubstr("are to be 0, 1 or between")));
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  }
  EXPECT_EQ(said_of([](int i) { return i % 2; }, 0, true), "");
}

// As many steps as are telling, over ten samples in batches of two; weights that are not 0 from step
// `zeros` on.
TEST_F(LikelyMistakes, WeightsThatAreAllZero) {
  const auto said_with = [&](int64_t zeros, bool is_logged) {
    RunSpec s = spec();
    s.log_dir = fresh_directory("likely_mistakes");
    s.max_number_of_steps = 12;
    s.input_fn = [&](ModeKeys) {
      Array weight(DType::kFloat32, {40});
      for (int64_t i = 2 * zeros; i < 40; ++i) weight.values<float>()[i] = 1;
      Array x(DType::kFloat32, {40});
      for (float& value : x.values<float>()) value = 1;
      return Dataset::from_arrays({x, weight}).batch(2).take(10).repeat();
    };
    s.model_fn = [&](const Inputs& in, ModeKeys) {
      VariableOptions options;
      if (is_logged) options.regularizer = l2_regularizer(0.1F);
      const Tensor w = get_variable("w", {}, constant_initializer(3), options);
      const Tensor loss = weighted_mean(square(in[0] * w), in[1]);
      ModelSpec model{.loss = loss};
      if (is_logged) model.log_info = {{"loss", loss}};
      return model;
    };
    s.auto_batch = false;
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    run_or_throw(s);
    return testing::internal::GetCapturedStderr();
  };
  for (const bool is_logged : {false, true}) {
    const std::string text = said_with(20, is_logged);
    EXPECT_THAT(text, HasSubstr("the loss was exactly 0 in each of the first 10 steps"));
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
    EXPECT_EQ(said_with(9, is_logged), "");
  }
}

}  // namespace
}  // namespace mox
