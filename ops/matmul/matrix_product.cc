#include "ops/matmul/matrix_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/matmul/internal/narrow_matmul.h"
#include "ops/matmul/internal/outer_product.h"
#include "ops/matmul/internal/split_matmul.h"
#include "ops/matmul/matmul_inputs.h"
#include "ops/processor/processor.h"

namespace mox {
namespace {

using Inputs = MatmulInputs<InputPosition>;

struct Matrix {
  int64_t rows, columns;  // as the product uses it
  Shape batch;
};
Matrix matrix_of(const Shape& shape, bool transpose) {
  const int rank = shape.rank();
  const int64_t rows = shape[rank - 2], columns = shape[rank - 1];
  return {transpose ? columns : rows, transpose ? rows : columns,
          Shape(std::vector<int64_t>(shape.begin(), shape.end() - 2))};
}

struct Product {
  bool transpose_a, transpose_b;
  Matrix a, b;
};
Product product_of(const Attributes& attributes, const Shape& a, const Shape& b) {
  const bool ta = attributes.get<bool>("transpose_a"), tb = attributes.get<bool>("transpose_b");
  return {ta, tb, matrix_of(a, ta), matrix_of(b, tb)};
}

// The descriptor of a factor as the product uses it, in `rank` dimensions: transposes are strides, absent
// batch axes 1.
dnnl::memory::desc factor_descriptor(const TensorType& type, bool transpose, int rank) {
  dnnl::memory::dims dims(rank - type.shape.rank(), 1);
  dims.insert(dims.end(), type.shape.begin(), type.shape.end());
  dnnl::memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
  if (transpose) {
    std::swap(dims[dims.size() - 2], dims[dims.size() - 1]);
    std::swap(strides[dims.size() - 2], strides[dims.size() - 1]);
  }
  return {dims, onednn::data_type_of(type.dtype), strides};
}

// A batch of left matrices times one right matrix is one tall product.
TensorType flattened(const TensorType& type) {
  const int64_t columns = type.shape[type.shape.rank() - 1];
  return {type.dtype, {type.shape.elements() / columns, columns}};
}

void add_to_rows(const float* bias, float* y, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < columns; ++c) y[row * columns + c] += bias[c];
}

Kernel narrow_kernel(const Node& node, const Product& product, int64_t m) {
  const Inputs inputs = positions<MatmulInputs>(node);
  const int64_t k = product.a.columns, n = product.b.columns;
  const bool ta = product.transpose_a, tb = product.transpose_b;
  Kernel kernel = plain_kernel(
      node,
      [=](const KernelArguments& arguments) {
        const float *a = inputs.a.of<float>(arguments), *b = inputs.b.of<float>(arguments);
        float* y = arguments.output<float>(0);
        if (ta)
          narrow_matmul_transposed(a, b, y, m, k, n, arguments.team);
        else if (tb)
          narrow_matmul_by_rows(a, b, y, m, k, n, arguments.team);
        else
          narrow_matmul(a, b, y, m, k, n, reinterpret_cast<float*>(arguments.scratch), arguments.team);
        if (inputs.bias.given()) add_to_rows(inputs.bias.of<float>(arguments), y, m, n);
      },
      narrow_matmul_implementation());
  if (!ta && !tb) kernel.scratch_bytes = narrow_matmul_scratch(k, n) * sizeof(float);
  return kernel;
}

// Weights stay plain: oneDNN's matmul packs what it needs while it runs, and a blocked copy of the weights
// would cost a pass over them every step (measured at 32 x 3136 x 1024: half of the product's time).
Kernel primitive_product(const Node& node, const Product& product, const TensorType& a, const TensorType& b,
                         const TensorType& y) {
  using onednn::primitive_input;
  const Inputs inputs = positions<MatmulInputs>(node);
  const int rank = y.shape.rank();
  const dnnl::memory::desc left = factor_descriptor(a, product.transpose_a, rank);
  const dnnl::memory::desc right = factor_descriptor(b, product.transpose_b, rank);
  const dnnl::memory::desc result = onednn::plain_descriptor(y);
  dnnl::memory::dims bias_dims(rank, 1);
  bias_dims.back() = y.shape[rank - 1];
  const dnnl::memory::desc bias(bias_dims, dnnl::memory::data_type::f32,
                                dnnl::memory::dims(bias_dims.size(), 1));
  const auto description = inputs.bias.given() ? onednn::describe<dnnl::matmul>(left, right, bias, result)
                                               : onednn::describe<dnnl::matmul>(left, right, result);
  std::vector<onednn::PrimitiveArgument> arguments = {
      primitive_input(DNNL_ARG_SRC, inputs.a.index, left),
      primitive_input(DNNL_ARG_WEIGHTS, inputs.b.index, right),
      onednn::primitive_output(DNNL_ARG_DST, 0, result)};
  if (inputs.bias.given()) arguments.push_back(primitive_input(DNNL_ARG_BIAS, inputs.bias.index, bias));
  for (onednn::PrimitiveArgument& argument : arguments)
    argument.layout =
        Layout::plain(argument.name == DNNL_ARG_DST ? node.outputs[0] : node.inputs[argument.index].type());
  return onednn::primitive_kernel(node, description, std::move(arguments));
}

Kernel split_kernel(const Node& node, const Product& product, int64_t m) {
  const Inputs inputs = positions<MatmulInputs>(node);
  const int64_t k = product.a.columns, n = product.b.columns;
  Kernel kernel = plain_kernel(
      node,
      [=](const KernelArguments& arguments) {
        split_matmul({m, k, n, inputs.a.of<float>(arguments), inputs.b.of<float>(arguments),
                      inputs.bias.of<float>(arguments), arguments.output<float>(0)},
                     reinterpret_cast<float*>(arguments.scratch), arguments.team);
      },
      processor().lanes >= 16 ? "split:avx512_core" : "split:avx2");
  kernel.scratch_bytes = split_matmul_scratch(m, n);
  return kernel;
}

// A weight's gradient can be given to the optimizer panel by panel.
void add_parts(Kernel& kernel, const Product& product, const Shape& y, const Inputs& inputs,
               const Team& team) {
  const int64_t m = y[0], k = product.a.columns, n = y[1];
  if (inputs.bias.given() || !product.transpose_a || product.transpose_b || !outer_product_pays(m, k, n))
    return;
  kernel.scratch_bytes = std::max(kernel.scratch_bytes, outer_product_scratch(n, team));
  kernel.implementation_in_parts = "panels:avx512_core";
  kernel.instantiate_in_parts = [=] {
    return [=](const KernelArguments& arguments) {
      outer_product_in_parts({m, k, n, inputs.a.of<float>(arguments), inputs.b.of<float>(arguments)},
                             reinterpret_cast<float*>(arguments.scratch), *arguments.parts, arguments.team);
    };
  };
}

}  // namespace

std::vector<TensorType> infer_matrix_product(const OpCall& call) {
  for (int i = 0; i < 2; ++i) {
    call.require(call.dtype(i) == DType::kFloat32, "float32 inputs");
    call.require(call.shape(i).rank() >= 2, "inputs of rank 2 or more: [..., rows, columns]");
  }
  const Product product = product_of(call.attributes, call.shape(0), call.shape(1));
  if (product.a.columns != product.b.rows)
    call.fail(fmt::format(
        "a's columns equal to b's rows, but as the product uses them a is {} x {} and b is {} x {}",
        product.a.rows, product.a.columns, product.b.rows, product.b.columns));
  // What is no tall product of two matrices goes to oneDNN as it is.
  const bool is_tall = call.shape(1).rank() == 2 && !product.transpose_a;
  call.require(is_tall || std::max(call.shape(0).rank(), call.shape(1).rank()) <= DNNL_MAX_NDIMS,
               fmt::format("inputs of rank {} at most", DNNL_MAX_NDIMS));
  Shape batch;
  call.require(broadcast_shapes(product.a.batch, product.b.batch, &batch),
               "batch axes (all but the last two) that broadcast: equal, or 1, or absent");
  std::vector<int64_t> dims(batch.begin(), batch.end());
  dims.push_back(product.a.rows);
  dims.push_back(product.b.columns);
  return {{DType::kFloat32, Shape(std::move(dims))}};
}

Kernel matrix_product_kernel(const Node& node, const Team& team) {
  if (onednn::has_empty_value(node)) return onednn::zero_kernel(node);
  const auto inputs = unpack<MatmulInputs>(node);
  TensorType a = inputs.a.type(), y = node.outputs[0];
  const TensorType& b = inputs.b.type();
  const Product product = product_of(node.attributes, a.shape, b.shape);
  if (b.shape.rank() == 2 && !product.transpose_a) {
    a = flattened(a);
    y = flattened(y);
  }
  // What our own loops take.
  const bool is_plain = a.dtype == DType::kFloat32 && b.dtype == DType::kFloat32 && y.shape.rank() == 2;
  const bool is_narrow = is_plain && !(product.transpose_a && product.transpose_b) &&
                         is_narrow_matmul(product.a.columns, product.b.columns);
  const bool is_split = is_plain && !is_narrow && !product.transpose_a && !product.transpose_b &&
                        split_matmul_pays(y.shape[0], product.a.columns, product.b.columns);
  Kernel kernel = is_narrow  ? narrow_kernel(node, product, y.shape[0])
                  : is_split ? split_kernel(node, product, y.shape[0])
                             : primitive_product(node, product, a, b, y);
  if (is_plain) add_parts(kernel, product, y.shape, positions<MatmulInputs>(node), team);
  kernel.floating_point_operations = 2.0 * static_cast<double>(y.shape.elements()) * product.a.columns;
  return kernel;
}

}  // namespace mox
