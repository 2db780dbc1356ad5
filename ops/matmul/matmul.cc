#include "ops/matmul/matmul.h"

#include "ops/matmul/matrix_product.h"
#include "ops/shape/shape.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

// A value [..., n] as a matrix of rows.
Tensor rows_of(const Tensor& x) {
  const int last = x.shape().rank() - 1;
  int64_t rows = 1;
  for (int axis = 0; axis < last; ++axis) rows *= x.shape()[axis];
  return reshape(x, {rows, x.shape()[last]});
}

// d op(a) = dy op(b)^T and d op(b) = op(a)^T dy; where op transposes, the transposed product
// is taken instead.
std::vector<Tensor> gradient_of_matmul(const GradientCall& call) {
  const Tensor &a = call.input(0), &b = call.input(1), &dy = call.gradient();
  const bool ta = call.node.attributes.get<bool>("transpose_a"),
             tb = call.node.attributes.get<bool>("transpose_b");
  const Tensor da =
      ta ? matmul(b, dy, {.transpose_a = tb, .transpose_b = true}) : matmul(dy, b, {.transpose_b = !tb});
  const bool one_tall_product = b.shape().rank() == 2 && a.shape().rank() > 2 && !ta;
  const Tensor left = one_tall_product ? rows_of(a) : a, right = one_tall_product ? rows_of(dy) : dy;
  const Tensor db = tb ? matmul(right, left, {.transpose_a = true, .transpose_b = ta})
                       : matmul(left, right, {.transpose_a = !ta});
  return {sum_to(da, a.shape()), sum_to(db, b.shape())};
}

}  // namespace

const Op& matmul_op() {
  static const Op op{.name = "matmul",
                     .infer = infer_matrix_product,
                     .gradient = gradient_of_matmul,
                     .compile = [](const KernelRequest& request) {
                       return matrix_product_kernel(request.node, request.team);
                     }};
  return op;
}

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options, SourceLocation where) {
  return make_tensor(matmul_op(), {a, b},
                     {{"transpose_a", options.transpose_a}, {"transpose_b", options.transpose_b}}, where);
}

}  // namespace mox
