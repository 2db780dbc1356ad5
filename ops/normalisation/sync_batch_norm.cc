#include <fmt/format.h>

#include "ops/arithmetic/arithmetic.h"
#include "ops/normalisation/internal/any_rank.h"
#include "ops/normalisation/normalisation.h"
#include "ops/shape/shape.h"
#include "runtime/base/error.h"
#include "runtime/tensor/float32_range.h"

namespace mox {
namespace {

void check(const Tensor& x, const Tensor& scale, const Tensor& offset, double epsilon, SourceLocation where) {
  const auto fail = [&](const char* expected) {
    throw InvalidArgument(fmt::format("sync_batch_norm at {}: expected {}; given x {}, scale {}, offset {}",
                                      to_string(where), expected, to_string(x), to_string(scale),
                                      to_string(offset)));
  };
  if (!x.defined() || !scale.defined() || !offset.defined()) fail("tensors");
  if (x.type().dtype != DType::kFloat32 || (x.shape().rank() < 2)) fail("float32 x [batch, channels, ...]");
  const TensorType per_channel{DType::kFloat32, {x.shape()[1]}};
  if (scale.type() != per_channel || offset.type() != per_channel)
    fail("scale and offset with one float32 number a channel of x");
  if (!(epsilon >= 0) || !is_finite_float32(epsilon)) fail("an epsilon of at least 0, finite as a float32");
}

}  // namespace

SyncBatchNormResult sync_batch_norm(const Tensor& given, const Tensor& scale, const Tensor& offset,
                                    const NormalisationOptions& options, SourceLocation where) {
  check(given, scale, offset, options.epsilon, where);
  const Tensor x = normalisation::as_image(given, where);
  const int64_t channels = x.shape()[1];
  const int64_t own_values = channels > 0 ? x.shape().elements() / channels : 0;
  const Tensor own_count = constant(Array::from<float>({1}, {static_cast<float>(own_values)}), where);
  const Tensor sums = replica_sum(concat({bias_add_gradient(x, where), own_count}, 0, where), where);

  SyncBatchNormResult result;
  result.values = stop_gradient(slice(sums, {channels}, {1}, where), where);
  // Of nothing the mean and the variance are 0, and no quotient of zeros.
  const Tensor divisor = maximum(result.values, 1.0F, where);
  // Rounded, so a constant that the values are counted from; how far the mean is from it comes
  // with the squares.
  const Tensor center = stop_gradient(div(slice(sums, {0}, {channels}, where), divisor, where), where);
  const Tensor centred = sub(x, bias_broadcast(center, x.shape(), where), where);
  const Tensor moments =
      div(replica_sum(
              concat({bias_add_gradient(centred, where), bias_add_gradient(square(centred, where), where)}, 0,
                     where),
              where),
          divisor, where);
  const Tensor distance = slice(moments, {0}, {channels}, where);
  result.mean = add(center, distance, where);
  // Rounding may leave a little less than nothing.
  result.variance = maximum(
      sub(slice(moments, {channels}, {channels}, where), square(distance, where), where), 0.0F, where);
  const Tensor factor = mul(scale, rsqrt(add(result.variance, options.epsilon, where), where), where);
  const Tensor shift = sub(offset, mul(distance, factor, where), where);
  const Tensor y = bias_add(mul(centred, bias_broadcast(factor, x.shape(), where), where), shift, where);
  result.y = normalisation::in_shape_of(given, y, where);
  return result;
}

}  // namespace mox
