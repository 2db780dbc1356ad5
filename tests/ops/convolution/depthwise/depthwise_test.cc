// Depthwise convolutions of what is normalised, and their gradients, as nodes by themselves.
#include "ops/convolution/depthwise/depthwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/convolution/convolution.h"
#include "ops/fusion/batch_norm_node.h"
#include "ops/fusion/depthwise_node.h"
#include "tests/ops/convolution/depthwise/depthwise_cases.h"
#include "tests/ops/reference_convolution.h"

namespace mox::test {
namespace {

// What both nodes compute, as plain loops.
struct DepthwiseReference {
  std::vector<double> normalised, inside;  // of the image; whether the activation passed the value on
  std::vector<double> y, dz, filter_gradient;

  DepthwiseReference(const ImageCase& c, std::span<const Array> in, const Array& dy) {
    const ReferenceConvolution convolution(c.image, filter_shape(c), depthwise_options(c));
    const int64_t pixels = c.image[2] * c.image[3], channels = c.image[1];
    for (int64_t i = 0; i < c.image.elements(); ++i) {
      const int64_t channel = i / pixels % channels;
      const auto of = [&](int input) -> double { return in[input].values<float>()[channel]; };
      const double value = (in[1].values<float>()[i] - of(4)) * of(2) / std::sqrt(of(5) + 0.1) + of(3);
      normalised.push_back(std::clamp(value, -0.5, 0.75));
      inside.push_back(value >= -0.5 && value <= 0.75);
    }
    y.resize(convolution.y.elements());
    dz.resize(normalised.size());
    filter_gradient.resize(filter_shape(c).elements());
    convolution.for_each_product([&](int64_t x, int64_t w, int64_t to) {
      y[to] += normalised[x] * in[0].values<float>()[w];
      dz[x] += inside[x] * in[0].values<float>()[w] * dy.values<float>()[to];
      filter_gradient[w] += normalised[x] * dy.values<float>()[to];
    });
  }
};

void expect_values(const Array& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.elements(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual.values<float>()[i], expected[i], tolerance) << "element " << i;
}

TEST(Depthwise, ComputesWhatPlainLoopsDo) {
  for (const ImageCase& c : depthwise_cases()) {
    SCOPED_TRACE(c.name);
    const int64_t channels = c.image[1], pixels = c.image[2] * c.image[3];
    const ReferenceConvolution convolution(c.image, filter_shape(c), depthwise_options(c));
    // filter, x, scale, offset, mean, variance, dy
    const std::vector<Array> in = {random_array(filter_shape(c), 1), random_array(c.image, 2),
                                   random_array({channels}, 3),      random_array({channels}, 4, -0.5f, 0.5f),
                                   random_array({channels}, 5),      random_array({channels}, 6, 0.1f, 1.0f),
                                   random_array(convolution.y, 7)};
    const DepthwiseReference expected(c, in, in[6]);
    Graph graph;
    const GraphScope scope(graph);
    std::vector<Tensor> t;
    for (const Array& array : in)
      t.push_back(graph.input(static_cast<int>(t.size()), array.type(), SourceLocation::current()));
    Attributes attributes = convolution_attributes(depthwise_options(c));
    for (const auto& [name, value] :
         batch_norm_attributes(0.1, {.clips = true, .low = -0.5f, .high = 0.75f, .open = false}))
      attributes.set(name, value);
    Node& forward = make_packed_node<DepthwiseOfNormalisedInputs>(depthwise_of_normalised_op(),
                                                                  {t[0], t[1], t[2], t[3], t[4], t[5]},
                                                                  attributes, SourceLocation::current());
    Node& gradients = make_packed_node<DepthwiseGradientsInputs>(depthwise_normalised_gradients_op(),
                                                                 {t[0], t[6], t[1], t[2], t[3], t[4], t[5]},
                                                                 attributes, SourceLocation::current());
    const std::vector<Array> results =
        run_graph(std::vector{forward.output(0), forward.output(1), forward.output(2), gradients.output(0),
                              gradients.output(1), gradients.output(2)},
                  in);
    expect_values(results[0], expected.y, 1e-5);
    expect_values(results[3], expected.dz, 1e-5);
    expect_values(results[5], expected.filter_gradient, 1e-4);

    const int64_t y_pixels = convolution.y[2] * convolution.y[3];
    std::vector<double> mean(channels), variance(channels), sums(c.image[0] * 2 * channels);
    for (size_t i = 0; i < expected.y.size(); ++i)
      mean[i / y_pixels % channels] += expected.y[i] / (c.image[0] * y_pixels);
    for (size_t i = 0; i < expected.y.size(); ++i)
      variance[i / y_pixels % channels] +=
          std::pow(expected.y[i] - mean[i / y_pixels % channels], 2) / (c.image[0] * y_pixels);
    for (size_t i = 0; i < expected.dz.size(); ++i) {
      const int64_t channel = i / pixels % channels, sample = i / pixels / channels;
      const double distance = in[1].values<float>()[i] - in[4].values<float>()[channel];
      sums[sample * 2 * channels + channel] += expected.dz[i];
      sums[(sample * 2 + 1) * channels + channel] += expected.dz[i] * distance;
    }
    expect_values(results[1], mean, 1e-5);
    expect_values(results[2], variance, 1e-5);
    expect_values(results[4], sums, 1e-4);
  }
}

}  // namespace
}  // namespace mox::test
