// Finite differences of the ops that only move elements, on shapes that include extents of 1 and 0.
#include <gtest/gtest.h>

#include "ops/indexing/indexing.h"
#include "ops/shape/shape.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

using Tensors = std::span<const Tensor>;

const Shape kMovedShapes[] = {{2, 3, 4}, {1, 3, 1}, {2, 0, 4}, {1, 1, 1}};

TEST(DataMovementGradient, OfNewShapes) {
  for (const Shape& shape : kMovedShapes) {
    const std::vector<Array> x{random_array(shape, 1)};
    check_gradients([](Tensors in) { return reshape(in[0], {in[0].shape().elements()}); }, x);
    check_gradients([](Tensors in) { return flatten(in[0]); }, x);
    check_gradients([](Tensors in) { return expand_dims(in[0], 1); }, x);
    check_gradients([](Tensors in) { return squeeze(in[0]); }, x);
    check_gradients([](Tensors in) { return transpose(in[0], {2, 0, 1}); }, x);
    check_gradients([](Tensors in) { return transpose(in[0]); }, x);
  }
}

TEST(DataMovementGradient, OfBoxes) {
  for (const Shape& shape : kMovedShapes) {
    const std::vector<Array> x{random_array(shape, 1)};
    check_gradients([](Tensors in) { return pad(in[0], {{1, 0}, {0, 2}, {1, 1}}, 5); }, x);
    check_gradients([](Tensors in) { return slice(in[0], {0, 0, 0}, {-1, -1, 1}); }, x);
  }
  check_gradients(
      [](Tensors in) {
        return slice(in[0], {1, 1, 2}, {1, -1, 2});
      },
      {random_array({2, 3, 4}, 1)});
}

TEST(DataMovementGradient, OfPieces) {
  for (const Shape& shape : kMovedShapes) {
    const std::vector<Array> two{random_array(shape, 1), random_array(shape, 2)};
    for (int64_t axis : {0, 1, -1}) {
      check_gradients([&](Tensors in) { return concat({in[0], in[1], in[0]}, axis); }, two);
      check_gradients([&](Tensors in) { return stack({in[0], in[1]}, axis); }, two);
    }
  }
  const std::vector<Array> x{random_array({4, 6}, 1)};
  check_gradients([](Tensors in) { return split(in[0], 3, 1)[1]; }, x);  // the others get zeros
  check_gradients(
      [](Tensors in) {
        const auto parts = split_sizes(in[0], {1, 0, 2, 3}, 1);
        return concat({parts[3], parts[0], parts[3]}, 1);
      },
      x);
  check_gradients([](Tensors in) { return stack({unstack(in[0])[2], unstack(in[0])[0]}); }, x);
}

TEST(DataMovementGradient, OfIndexing) {
  const Array ids = Array::from<int32_t>({2, 3}, {2, 0, 2, 1, 2, 0});
  const Array none = Array::from<int64_t>({0}, {});
  for (int64_t axis : {0, 1, -1}) {
    check_gradients([&](Tensors in) { return gather(in[0], in[1], axis); },
                    {random_array({3, 3, 3}, 1), ids});
    check_gradients([&](Tensors in) { return gather(in[0], in[1], axis); },
                    {random_array({3, 3, 3}, 1), none});
  }
  check_gradients([](Tensors in) { return embedding_lookup(in[0], in[1]); }, {random_array({3, 4}, 1), ids});
  check_gradients([](Tensors in) { return unsorted_segment_sum(in[0], in[1], 4); },
                  {random_array({2, 3, 4}, 1), ids});
  check_gradients([](Tensors in) { return unsorted_segment_sum(in[0], in[1], 4, 1); },
                  {random_array({4, 2, 3}, 1), ids});
  check_gradients([](Tensors in) { return take_along_last_axis(in[0], in[1]); },
                  {random_array({2, 5}, 1), ids});
  check_gradients([](Tensors in) { return scatter_along_last_axis(in[0], in[1], 5); },
                  {random_array({2, 3}, 1), ids});
}

TEST(DataMovementGradient, OfTopK) {
  // Values farther apart than the step, so that no order changes.
  const Array x = Array::from<float>({2, 4}, {0.1f, 0.9f, -0.5f, 0.4f, 1.0f, 0.2f, 0.6f, -1.0f});
  check_gradients([](Tensors in) { return top_k(in[0], 2).values; }, {x});
  check_gradients([](Tensors in) { return top_k(in[0], 4).values; }, {x});
}

}  // namespace
}  // namespace mox::test
