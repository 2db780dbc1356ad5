// How much samples count in the loss of the pre-set job, by their classes.
#include "models/image_classifier/class_weights.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/evaluate.h"

namespace mox {
namespace {

using image_classifier::weighted_cross_entropy;

const std::vector<double> kWithoutDark{0, 2, 1};

// Of the loss of one sample, for the logits of three classes.
Array gradient_of(const Array& labels, const std::vector<double>& weights, double smoothing) {
  return test::evaluate_op(
      [&](std::span<const Tensor> in) {
        const Tensor loss = reduce_mean(weighted_cross_entropy(in[0], constant(labels), weights, smoothing));
        return gradients(loss, in)[0];
      },
      {Array::from<float>({1, 3}, {0.5F, -1, 0.25F})});
}

TEST(WeightedCrossEntropy, OfAMixtureAClassWithoutWeightIsNotLearnt) {
  const Array mixture = Array::from<float>({1, 3}, {0.75F, 0.25F, 0}),
              light = Array::from<float>({1, 3}, {0, 1, 0});
  for (const double smoothing : {0.0, 0.1}) {
    Array expected = gradient_of(light, kWithoutDark, smoothing);
    for (float& value : expected.values<float>()) value *= 0.25F;
    test::expect_close(gradient_of(mixture, kWithoutDark, smoothing), expected, 1e-6, 1e-6);
  }
}

TEST(WeightedCrossEntropy, OfAWholeLabelIsThatOfItsNumber) {
  const Array shares = Array::from<float>({1, 3}, {0, 1, 0}), number = Array::from<int32_t>({1}, {1});
  for (const double smoothing : {0.0, 0.1})
    test::expect_close(gradient_of(shares, kWithoutDark, smoothing),
                       gradient_of(number, kWithoutDark, smoothing), 1e-6, 1e-6);
}

}  // namespace
}  // namespace mox
