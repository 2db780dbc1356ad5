#include "ops/normalisation/internal/batch_norm_onednn.h"

#include <fmt/format.h>

#include "runtime/tensor/float32_range.h"

namespace mox {

void check_batch_norm(const OpCall& call, std::initializer_list<int> per_channel) {
  const TensorType& x = call.type(0);
  call.require(x.dtype == DType::kFloat32, "a float32 x");
  call.require(x.shape.rank() == 4 || x.shape.rank() == 2, "x [batch, channels, ...]");
  const TensorType expected{DType::kFloat32, {x.shape[1]}};
  for (const int i : per_channel)
    if (call.type(i) != expected)
      call.fail(fmt::format("{}, one number a channel of x, as input {}", to_string(expected), i));
  const double epsilon = call.attributes.get<double>("epsilon");
  call.require(epsilon >= 0 && is_finite_float32(epsilon), "an epsilon of at least 0, finite as a float32");
}

namespace onednn {

BatchNormDescriptors::BatchNormDescriptors(const TensorType& type, const Layout& wanted)
    : layout(wanted.is_opaque() ? Layout::plain(type) : wanted),
      per_channel({type.shape[1]}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a) {
  if (type.shape.rank() == 4) {
    x = descriptor_of(type, layout);
    return;
  }
  layout = Layout::plain(type);
  x = plain_descriptor({type.dtype, {type.shape[0], type.shape[1], 1, 1}});
}

dnnl::batch_normalization_forward::primitive_desc describe_batch_norm(const BatchNormDescriptors& d,
                                                                      double epsilon) {
  using Flags = dnnl::normalization_flags;
  return describe_normalisation(d.x, static_cast<float>(epsilon),
                                Flags::use_scale | Flags::use_shift | Flags::use_global_stats);
}

}  // namespace onednn
}  // namespace mox
