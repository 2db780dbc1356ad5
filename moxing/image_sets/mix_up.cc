#include "moxing/image_sets/mix_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "moxing/image/augmentation.h"
#include "runtime/base/error.h"
#include "runtime/tensor/round_to_bfloat16.h"

namespace mox::data {
namespace {

// Jöhnk's method, in logarithms so that the powers of a small alpha do not vanish: a pair of powers of
// uniform numbers whose sum is at most one has the wanted proportion.
double symmetric_beta(const RandomStream& random, uint64_t position, double alpha) {
  for (;; position += 2) {
    const double x = std::log1p(-random.uniform(position)) / alpha;  // log of a number in (0, 1]
    const double y = std::log1p(-random.uniform(position + 1)) / alpha;
    if (std::exp(x) + std::exp(y) <= 1) return 1 / (1 + std::exp(y - x));
  }
}

void mix_values(const float* first, const float* second, float share, size_t count, float* out) {
  for (size_t k = 0; k < count; ++k) out[k] = share * first[k] + (1 - share) * second[k];
}

void mix_values(const float* first, const float* second, float share, size_t count, BFloat16* out) {
  constexpr size_t kPart = 1024;  // mixed and rounded in the nearest cache
  float mixed[kPart];
  for (size_t k = 0; k < count; k += kPart) {
    const size_t size = std::min(kPart, count - k);
    mix_values(first + k, second + k, share, size, mixed);
    round_to_bfloat16({mixed, size}, out + k);
  }
}

template <typename Value>
void mix(const MixUpOptions& options, const SampleContext& context, const Element& batch,
         std::span<Array> outputs) {
  const std::span<const float> images = batch[0].values<float>();
  const std::span<const int32_t> labels = batch[1].values<int32_t>();
  const size_t count = labels.size(), classes = options.num_classes;
  for (size_t i = 0; i < count; ++i)
    if (labels[i] < 0 || labels[i] >= options.num_classes)
      throw DataError(fmt::format("mix_up: label {} of the batch's sample {} is not in [0, {})", labels[i], i,
                                  options.num_classes));
  const RandomStream random = context.random();
  // Batches come shuffled: any fixed distance to the partner is as good as a permutation.
  const size_t distance = count > 1 ? 1 + random.below(0, count - 1) : 0;
  const float share = symmetric_beta(random, 1, options.alpha);
  const std::span<Value> mixed = outputs[0].values<Value>();
  const std::span<float> targets = outputs[1].values<float>();
  std::fill(targets.begin(), targets.end(), 0.0f);
  const size_t size = count > 0 ? images.size() / count : 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t partner = (i + distance) % count;
    mix_values(images.data() + i * size, images.data() + partner * size, share, size,
               mixed.data() + i * size);
    targets[i * classes + labels[i]] += share;
    targets[i * classes + labels[partner]] += 1 - share;
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
  image::validate_sample_dtype(options.dtype, fmt::format("mix_up ({})", to_string(where)));
  const auto& types = batches.signature();
  if (!types.empty() && types[0].dtype == DType::kBFloat16)
    fail(
        "the images are bfloat16 already, and would be rounded twice: give it float32 ones, and set "
        "MixUpOptions::dtype for mixtures of bfloat16");
  if (types.size() != 2 || types[0].dtype != DType::kFloat32 || types[0].shape.rank() < 1 ||
      types[1].dtype != DType::kInt32 || types[1].shape.rank() != 1)
    fail(
        "the elements must be batches of float32 images and int32 labels, {[batch, ...], [batch]}: call it "
        "after batch");
  const std::vector<TensorType> signature{{options.dtype, types[0].shape},
                                          {DType::kFloat32, Shape{types[1].shape[0], options.num_classes}}};
  return batches.map_into(
      signature,
      [options](const SampleContext& context, const Element& batch, std::span<Array> outputs) {
        if (options.dtype == DType::kBFloat16)
          mix<BFloat16>(options, context, batch, outputs);
        else
          mix<float>(options, context, batch, outputs);
      },
      where);
}

}  // namespace mox::data
