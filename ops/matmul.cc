#include "ops/matmul.h"

#include <fmt/format.h>

#include "ops/internal/dnnl.h"
#include "ops/internal/narrow_matmul.h"

namespace mox {
namespace {

bool transposes(const Attributes& attributes, const char* name) { return attributes.get<bool>(name); }

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

std::vector<TensorType> infer(const OpCall& call) {
  for (int i = 0; i < 2; ++i) {
    call.require(call.dtype(i) == DType::kFloat32, "float32 inputs");
    call.require(call.shape(i).rank() >= 2, "inputs of rank 2 or more: [..., rows, columns]");
  }
  const Matrix a = matrix_of(call.shape(0), transposes(call.attributes, "transpose_a"));
  const Matrix b = matrix_of(call.shape(1), transposes(call.attributes, "transpose_b"));
  if (a.columns != b.rows)
    call.fail(fmt::format(
        "a's columns equal to b's rows, but as the product uses them a is {} x {} and b is {} x {}", a.rows,
        a.columns, b.rows, b.columns));
  Shape batch;
  call.require(a.batch == b.batch && broadcast_shapes(a.batch, b.batch, &batch),
               "batch axes (all but the last two) that are equal");
  std::vector<int64_t> dims(batch.begin(), batch.end());
  dims.push_back(a.rows);
  dims.push_back(b.columns);
  return {{DType::kFloat32, Shape(std::move(dims))}};
}

std::vector<Tensor> gradient(const GradientCall& call) {
  const Tensor &a = call.input(0), &b = call.input(1), &dy = call.gradient();
  const bool ta = transposes(call.node.attributes, "transpose_a");
  const bool tb = transposes(call.node.attributes, "transpose_b");
  // d op(a) = dy op(b)^T and d op(b) = op(a)^T dy; where op transposes, the transposed product is taken
  // instead.
  const Tensor da =
      ta ? matmul(b, dy, {.transpose_a = tb, .transpose_b = true}) : matmul(dy, b, {.transpose_b = !tb});
  const Tensor db =
      tb ? matmul(dy, a, {.transpose_a = true, .transpose_b = ta}) : matmul(a, dy, {.transpose_a = !ta});
  return {da, db};
}

// The descriptor of a factor as the product uses it, in `rank` dimensions: transposes are strides, absent
// batch axes 1.
dnnl::memory::desc factor_descriptor(const TensorType& type, bool transpose, int rank) {
  dnnl::memory::dims dims(static_cast<size_t>(rank - type.shape.rank()), 1);
  dims.insert(dims.end(), type.shape.begin(), type.shape.end());
  dnnl::memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
  if (transpose) {
    std::swap(dims[dims.size() - 2], dims[dims.size() - 1]);
    std::swap(strides[dims.size() - 2], strides[dims.size() - 1]);
  }
  return {dims, onednn::data_type_of(type.dtype), strides};
}

Kernel narrow_kernel(const Node& node, const Matrix& a, const Matrix& b, bool ta, bool tb) {
  const int64_t m = a.rows, k = a.columns, n = b.columns;
  Kernel kernel = plain_kernel(
      node,
      [=](const KernelArguments& arguments) {
        const float *left = arguments.input<float>(0), *right = arguments.input<float>(1);
        float* y = arguments.output<float>(0);
        if (ta) return narrow_matmul_transposed(left, right, y, m, k, n, arguments.team);
        if (tb) return narrow_matmul_by_rows(left, right, y, m, k, n, arguments.team);
        narrow_matmul(left, right, y, m, k, n, reinterpret_cast<float*>(arguments.scratch), arguments.team);
      },
      narrow_matmul_implementation());
  if (!ta && !tb) kernel.scratch_bytes = static_cast<size_t>(narrow_matmul_scratch(k, n)) * sizeof(float);
  return kernel;
}

// Weights stay plain: oneDNN's matmul packs what it needs while it runs, and a blocked copy of the weights
// would cost a pass over them every step (measured at 32 x 3136 x 1024: as long as half of the product).
Kernel compile(const KernelRequest& request) {
  const Node& node = request.node;
  if (onednn::has_empty_value(node)) return onednn::zero_kernel(node);
  const TensorType& y = node.outputs[0];
  const int rank = y.shape.rank();
  const bool ta = transposes(node.attributes, "transpose_a"), tb = transposes(node.attributes, "transpose_b");
  const Matrix left = matrix_of(node.inputs[0].shape(), ta), right = matrix_of(node.inputs[1].shape(), tb);
  const double products = static_cast<double>(y.shape.elements()) * static_cast<double>(left.columns);
  if (rank == 2 && !(ta && tb) && is_narrow_matmul(left.columns, right.columns)) {
    Kernel kernel = narrow_kernel(node, left, right, ta, tb);
    kernel.floating_point_operations = 2 * products;
    return kernel;
  }
  const dnnl::memory::desc a = factor_descriptor(node.inputs[0].type(), ta, rank);
  const dnnl::memory::desc b = factor_descriptor(node.inputs[1].type(), tb, rank);
  const dnnl::matmul::primitive_desc description({a, b, onednn::plain_descriptor(y)},
                                                 onednn::attributes_with_scratchpad(), onednn::engine());
  auto source = onednn::primitive_input(DNNL_ARG_SRC, 0, a);
  auto weights = onednn::primitive_input(DNNL_ARG_WEIGHTS, 1, b);
  source.layout = Layout::plain(node.inputs[0].type());
  weights.layout = Layout::plain(node.inputs[1].type());
  Kernel kernel = onednn::primitive_kernel(
      node, description,
      {source, weights, onednn::primitive_output(DNNL_ARG_DST, 0, description.dst_desc())});
  kernel.floating_point_operations = 2 * products;
  return kernel;
}

const Op kMatmul{.name = "matmul", .infer = infer, .gradient = gradient, .compile = compile};

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options, SourceLocation where) {
  return make_tensor(kMatmul, {a, b},
                     {{"transpose_a", options.transpose_a}, {"transpose_b", options.transpose_b}}, where);
}

}  // namespace mox
