#include "moxing/mix_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"

namespace mox::data {
namespace {

// Jöhnk's method, in logarithms so that the powers of a small alpha do not vanish: a pair of powers of uniform numbers
// whose sum is at most one has the wanted proportion.
double symmetric_beta(const RandomStream& random, uint64_t position, double alpha) {
  for (;; position += 2) {
    const double x = std::log1p(-random.uniform(position)) / alpha;  // log of a number in (0, 1]
    const double y = std::log1p(-random.uniform(position + 1)) / alpha;
    if (std::exp(x) + std::exp(y) <= 1) return 1 / (1 + std::exp(y - x));
  }
}

void mix(const MixUpOptions& options, const SampleContext& context, const Element& batch,
         std::span<Array> outputs) {
  const std::span<const float> images = batch[0].values<float>();
  const std::span<const int32_t> labels = batch[1].values<int32_t>();
  const size_t count = labels.size(), classes = static_cast<size_t>(options.num_classes);
  for (size_t i = 0; i < count; ++i)
    if (labels[i] < 0 || labels[i] >= options.num_classes)
      throw DataError(fmt::format("mix_up: label {} of the batch's sample {} is not in [0, {})", labels[i], i,
                                  options.num_classes));
  const RandomStream random = context.random();
  // Batches come shuffled: any fixed distance to the partner is as good as a permutation.
  const size_t distance = count > 1 ? 1 + random.below(0, count - 1) : 0;
  const auto share = static_cast<float>(symmetric_beta(random, 1, options.alpha));
  const std::span<float> mixed = outputs[0].values<float>(), targets = outputs[1].values<float>();
  std::fill(targets.begin(), targets.end(), 0.0f);
  const size_t size = count > 0 ? images.size() / count : 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t partner = (i + distance) % count;
    const float *first = &images[i * size], *second = &images[partner * size];
    for (size_t k = 0; k < size; ++k) mixed[i * size + k] = share * first[k] + (1 - share) * second[k];
    targets[i * classes + static_cast<size_t>(labels[i])] += share;
    targets[i * classes + static_cast<size_t>(labels[partner])] += 1 - share;
  }
}

}  // namespace

Dataset mix_up(const Dataset& batches, const MixUpOptions& options, SourceLocation where) {
  const auto fail = [&](const std::string& what) {
    throw InvalidArgument(fmt::format("mix_up ({}): {}", to_string(where), what));
  };
  if (!(options.alpha > 0) || options.alpha > 1)
    fail(fmt::format("alpha must be in (0, 1], it is {}", options.alpha));
  if (options.num_classes < 2)
    fail(fmt::format("num_classes must be at least 2, it is {}", options.num_classes));
  const auto& types = batches.signature();
  if (types.size() != 2 || types[0].dtype != DType::kFloat32 || types[0].shape.rank() < 1 ||
      types[1].dtype != DType::kInt32 || types[1].shape.rank() != 1)
    fail(
        "the elements must be batches of float32 images and int32 labels, {[batch, ...], [batch]}: call it "
        "after batch");
  const std::vector<TensorType> signature{types[0],
                                          {DType::kFloat32, Shape{types[1].shape[0], options.num_classes}}};
  return batches.map_into(
      signature,
      [options](const SampleContext& context, const Element& batch, std::span<Array> outputs) {
        mix(options, context, batch, outputs);
      },
      where);
}

}  // namespace mox::data
