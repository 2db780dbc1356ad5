// Training agrees with PyTorch: torchvision's networks, their state loaded by name, against float64 results
// of tests/fixtures/make_torchvision_fixtures.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "models/zoo/torch_state.h"
#include "runtime/base/file.h"
#include "tests/models/torch_fixture.h"
#include "tests/models/training.h"

namespace mox {
namespace {

using Json = nlohmann::json;

const Json& fixtures() {
  static const Json document =
      Json::parse(read_file(MOX_SOURCE_DIR "/tests/fixtures/torchvision_fixtures.json"));
  return document;
}

Array transposed(const Array& matrix) {
  const auto rows = static_cast<size_t>(matrix.shape()[0]), columns = static_cast<size_t>(matrix.shape()[1]);
  Array result(DType::kFloat32, {matrix.shape()[1], matrix.shape()[0]});
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      result.values<float>()[column * rows + row] = matrix.values<float>()[row * columns + column];
  return result;
}

Array difference(const Array& a, const Array& b) {
  Array result(a.type());
  for (size_t i = 0; i < result.values<float>().size(); ++i)
    result.values<float>()[i] = a.values<float>()[i] - b.values<float>()[i];
  return result;
}

constexpr const char *kGradientWithoutEffect = "gradient without effect",
                     *kChangeWithoutEffect = "change without effect";

class Agreement : public testing::TestWithParam<const char*> {
 protected:
  // Records the error of `value` under its kind ("gradient" of "gradient/conv1.weight"), less `rounding`.
  void compare(const std::string& key, const Array& value, double rounding = 0) {
    const Digest truth = fixture_["digests"].at(key).get<Digest>();
    ++compared_;
    const Digest given = digest_of(key, value.values<float>());
    std::string kind = key.substr(0, key.find('/'));
    double error = digest_error(given, truth) - rounding;
    // The bias before a normalisation has no effect, and so no gradient but rounding errors: these are
    // compared as they are.
    if (truth[0] < 1e-6 && key.ends_with(".bias")) {
      kind = kind == "gradient" ? kGradientWithoutEffect : kChangeWithoutEffect;
      error = given[1];
    }
    auto [worst, is_new] = worst_.try_emplace(kind, error, key);
    const bool is_lost = std::isnan(worst->second.first);  // NaN is the worst, and stays
    if (!is_lost && !(error <= worst->second.first)) worst->second = {error, key};
  }

  void expect_within(const std::string& kind, double tolerance) {
    const auto& [error, key] = worst_.at(kind);
    std::printf("  %-18s error %.1e  (PyTorch's float32: %.1e)  worst: %s\n", kind.c_str(), error,
                fixture_["float32_deviation"].value(kind, 0.0), key.c_str());
    EXPECT_LE(error, tolerance) << key;
  }

  const Json& fixture_ = fixtures()["networks"].at(GetParam());
  size_t compared_ = 0;
  std::map<std::string, std::pair<double, std::string>> worst_;

  // Trains in `precision`, with direct sums of convolutions if `direct`, and records every error.
  void train(Precision precision, bool direct = false);
};

void Agreement::train(Precision precision, bool direct) {
  std::vector<NamedArray> state;
  for (const auto& [name, extents] : fixture_["state"].items()) {
    const std::vector<int64_t> shape = extents;
    if (name.ends_with("num_batches_tracked"))
      state.push_back({name, Array::scalar<int64_t>(0)});
    else
      state.push_back({name, formula_state(name, Shape(shape), fixture_["lowest_offset"].get<float>())});
  }
  const std::vector<ImportedVariable> imported = import_torch_state(GetParam(), state);
  std::map<std::string, Array> initial;  // before the first update; the store takes the memory as its own
  std::vector<NamedArray> values;
  for (const ImportedVariable& entry : imported) {
    initial[entry.variable.name] = entry.variable.value.clone();
    values.push_back(entry.variable);
  }

  const int64_t batch = fixture_["batch"], size = fixture_["image_size"], classes = fixture_["classes"];
  NetworkOptions options{.num_classes = classes, .image_size = size};
  if (get_model_meta(GetParam()).dropout) options.dropout = 0.0f;
  const Array images = formula_uniform("images", {batch, 3, size, size}, -1, 1),
              labels = formula_labels(batch, classes);

  {
    Training inference(GetParam(), options, images, labels, ModeKeys::EVAL, values, 2, precision, direct);
    inference.compute();
    compare("inference_logits", inference.logits());
  }
  Training training(GetParam(), options, images, labels, ModeKeys::TRAIN, values, 2, precision, direct);
  EXPECT_EQ(training.variables(), imported.size());
  const int steps = fixture_["steps"];
  for (int step = 0; step < steps; ++step) {
    training.compute();
    compare("loss/" + std::to_string(step), Array::scalar(static_cast<float>(training.loss())));
    if (step == 0) {
      compare("logits", training.logits());
      for (const ImportedVariable& entry : imported)
        if (const Array gradient = training.gradient(entry.variable.name); gradient.defined())
          compare("gradient/" + entry.torch_name, entry.transposed ? transposed(gradient) : gradient);
    }
    training.update(fixture_["learning_rate"].get<double>());
    if (step == 0)
      for (const ImportedVariable& entry : imported)
        if (entry.torch_name.find("running") != std::string::npos)
          compare("moving/" + entry.torch_name, training.variable(entry.variable.name));
  }
  for (const ImportedVariable& entry : imported) {
    const Array& before = initial.at(entry.variable.name);
    const Array change = difference(training.variable(entry.variable.name), before);
    // The updates round the weight, not its change, which is smaller by orders of magnitude.
    const std::string key = "change/" + entry.torch_name;
    const Digest scale = digest_of(key, before.values<float>()),
                 truth = fixture_["digests"].at(key).get<Digest>();
    const double rounding = 3 * steps * 0x1p-24 * std::max(scale[0] / truth[0], scale[1] / truth[1]);
    compare(key, entry.transposed ? transposed(change) : change, rounding);
  }
  EXPECT_EQ(compared_, fixture_["digests"].size()) << "every entry of the fixture is compared";
}

TEST_P(Agreement, OfLossGradientsMovingAveragesAndTrainedWeights) {
  train(Precision::kFloat32);
  for (const auto& [kind, worst] : worst_) expect_within(kind, kind == "change" ? 1e-3 : 1e-4);
}

// bfloat16 rounds where a gradient of a small batch passes a relu, so single gradients differ by more than
// their size, PyTorch's too. No kind of result may be farther from the truth than two and a half times
// PyTorch's own autocast; for the ResNets with direct sums of convolutions, as autocast has them, than twice.
// (Winograd's transforms are rounded as well; the largest measured is 1.8.)
class LowPrecisionAgreement : public Agreement {
 protected:
  void expect_within_autocast(double factor) {
    const Json& autocast = fixture_["bfloat16_deviation"];
    for (const auto& [kind, worst] : worst_)
      if (kind != kChangeWithoutEffect) expect_within(kind, factor * autocast.at(kind).get<double>());
    if (worst_.contains(kChangeWithoutEffect)) {
      // What momentum makes of such gradients at the most, and a rounding of the bias (below 2) in each step:
      // too few bits for a factor.
      const double steps = fixture_["steps"], rate = fixture_["learning_rate"];
      const double gradient = factor * autocast.at(kGradientWithoutEffect).get<double>();
      expect_within(kChangeWithoutEffect, rate * gradient * steps * (steps + 1) / 2 + steps * 0x1p-24);
    }
  }
  void SetUp() override {
    if (bfloat16_support() == BFloat16Support::kNone) GTEST_SKIP() << "needs AVX-512, for bfloat16";
  }
};

TEST_P(LowPrecisionAgreement, OfDirectSumsIsAsCloseAsAutocast) {
  train(Precision::kBFloat16, true);
  expect_within_autocast(std::string(GetParam()).starts_with("resnet") ? 2 : 2.5);
}

TEST_P(LowPrecisionAgreement, IsNearlyAsCloseAsAutocast) {
  train(Precision::kBFloat16);
  expect_within_autocast(2.5);
}

constexpr const char* kNetworks[] = {"resnet_v1_18", "resnet_v1_50", "vgg_a", "vgg_16_bn", "mobilenet_v2"};
std::string network_name(const testing::TestParamInfo<const char*>& test) { return test.param; }

INSTANTIATE_TEST_SUITE_P(Torchvision, Agreement, testing::ValuesIn(kNetworks), network_name);
INSTANTIATE_TEST_SUITE_P(Torchvision, LowPrecisionAgreement, testing::ValuesIn(kNetworks), network_name);

}  // namespace
}  // namespace mox
