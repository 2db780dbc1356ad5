#include "ops/matmul/matmul.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "ops/matmul/internal/narrow_matmul_kernels.h"
#include "ops/processor/processor.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "runtime/exec/evaluate.h"
#include "tests/ops/kernel_testing.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

struct Sizes {
  int64_t m, k, n;

  std::string name() const { return std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n); }
};

void PrintTo(const Sizes& sizes, std::ostream* stream) { *stream << sizes.name(); }

// The product of two matrices at `a` and `b`, as loops.
void reference_product(const float* a, const float* b, float* y, Sizes s, bool ta, bool tb) {
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      double total = 0;
      for (int64_t p = 0; p < s.k; ++p)
        total += static_cast<double>(ta ? a[p * s.m + i] : a[i * s.k + p]) *
                 static_cast<double>(tb ? b[j * s.k + p] : b[p * s.n + j]);
      y[i * s.n + j] = static_cast<float>(total);
    }
}

class MatmulTest : public testing::TestWithParam<Sizes> {};

TEST_P(MatmulTest, IsTheSumOfProductsForEveryTranspose) {
  const Sizes s = GetParam();
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const int threads : {1, 2}) {
        const Array a = random_array(ta ? Shape{s.k, s.m} : Shape{s.m, s.k}, 1);
        const Array b = random_array(tb ? Shape{s.n, s.k} : Shape{s.k, s.n}, 2);
        Array expected(DType::kFloat32, {s.m, s.n});
        reference_product(a.values<float>().data(), b.values<float>().data(), expected.values<float>().data(),
                          s, ta, tb);
        Graph graph;
        const Tensor y = matmul(graph.input(0, a.type(), SourceLocation::current()),
                                graph.input(1, b.type(), SourceLocation::current()),
                                {.transpose_a = ta, .transpose_b = tb});
        SCOPED_TRACE(testing::Message() << "transpose_a " << ta << " transpose_b " << tb);
        expect_near(run_node(y, {a, b}, {}, threads), expected, 1e-5);
      }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MatmulTest,
                         testing::Values(Sizes{1, 1, 1}, Sizes{3, 5, 7}, Sizes{100, 784, 10},
                                         Sizes{784, 100, 10}, Sizes{32, 100, 64}, Sizes{1, 17, 1},
                                         Sizes{5, 1, 33}, Sizes{0, 3, 4}, Sizes{3, 0, 4}, Sizes{3, 4, 0},
                                         Sizes{33, 65, 129}, Sizes{7, 50, 9}, Sizes{130, 35, 6},
                                         Sizes{5, 4100, 3}),
                         [](const auto& info) { return info.param.name(); });

// Both instruction sets, whichever the processor would choose, and every number of columns.
TEST(NarrowMatmul, BothInstructionSetsAgreeWithTheLoops) {
  for (int64_t n = 1; n <= 12; ++n)
    for (const NarrowMatmulKernels* kernels : {&kNarrowMatmulAvx2, &kNarrowMatmulAvx512}) {
      if (kernels == &kNarrowMatmulAvx512 && available_processor().lanes < 16) continue;
      const Sizes s{41, 37, n};
      const Array a = random_array({s.m, s.k}, 1), at = random_array({s.k, s.m}, 2),
                  b = random_array({s.k, n}, 3), bt = random_array({n, s.k}, 4);
      Array expected(DType::kFloat32, {s.m, n}), actual(DType::kFloat32, {s.m, n});
      float* y = actual.values<float>().data();
      kernels->multiply(a.values<float>().data(), bt.values<float>().data(), y, s.m, s.k, s.k, n);
      reference_product(a.values<float>().data(), bt.values<float>().data(), expected.values<float>().data(),
                        s, false, true);
      expect_near(actual, expected, 1e-5);
      kernels->multiply_transposed(at.values<float>().data(), b.values<float>().data(), y, 0, s.m, s.m, s.k,
                                   n);
      reference_product(at.values<float>().data(), b.values<float>().data(), expected.values<float>().data(),
                        s, true, false);
      expect_near(actual, expected, 1e-5);
    }
}

TEST(NarrowMatmul, GivesTheSameBitsOnAnyTeam) {
  const Array x = random_array({101, 783}, 1), w = random_array({783, 10}, 2),
              dy = random_array({101, 10}, 3);
  Graph graph;
  auto input = [&](int i, const Array& value) {
    return graph.input(i, value.type(), SourceLocation::current());
  };
  const Tensor y = matmul(input(0, x), input(1, w)),
               dw = matmul(input(0, x), input(2, dy), {.transpose_a = true});
  for (const int threads : {2, 3}) {
    EXPECT_TRUE(std::ranges::equal(run_node(y, {x, w}, {}, 1).as_bytes(),
                                   run_node(y, {x, w}, {}, threads).as_bytes()));
    EXPECT_TRUE(std::ranges::equal(run_node(dw, {x, dy}, {}, 1).as_bytes(),
                                   run_node(dw, {x, dy}, {}, threads).as_bytes()));
  }
}

TEST(Matmul, BroadcastsTheBatch) {
  const Sizes s{3, 4, 5};
  struct {
    Shape a_batch, b_batch, batch;
  } const cases[] = {{{2}, {2}, {2}}, {{2}, {}, {2}},  {{}, {3}, {3}},      {{2, 1}, {3}, {2, 3}},
                     {{1}, {4}, {4}}, {{0}, {1}, {0}}, {{2, 3}, {}, {2, 3}}};
  for (const auto& c : cases) {
    auto with = [](const Shape& batch, int64_t rows, int64_t columns) {
      std::vector<int64_t> dims(batch.begin(), batch.end());
      dims.insert(dims.end(), {rows, columns});
      return Shape(dims);
    };
    const Array a = random_array(with(c.a_batch, s.m, s.k), 1),
                b = random_array(with(c.b_batch, s.k, s.n), 2);
    Array expected(DType::kFloat32, with(c.batch, s.m, s.n));
    for (int64_t i = 0; i < c.batch.elements(); ++i) {
      // The index of the factor's matrix for batch position i, axis by axis from the last.
      auto matrix = [&](const Shape& factor) {
        int64_t index = 0, rest = i, step = 1;
        for (int axis = 1; axis <= c.batch.rank(); ++axis) {
          const int64_t extent = c.batch[c.batch.rank() - axis], position = rest % extent;
          rest /= extent;
          if (axis > factor.rank()) continue;
          const int64_t own = factor[factor.rank() - axis];
          index += (own == 1 ? 0 : position) * step;
          step *= own;
        }
        return index;
      };
      reference_product(a.values<float>().data() + matrix(c.a_batch) * s.m * s.k,
                        b.values<float>().data() + matrix(c.b_batch) * s.k * s.n,
                        expected.values<float>().data() + i * s.m * s.n, s, false, false);
    }
    Graph graph;
    const Tensor y = matmul(graph.input(0, a.type(), SourceLocation::current()),
                            graph.input(1, b.type(), SourceLocation::current()));
    SCOPED_TRACE(to_string(a.shape()) + " x " + to_string(b.shape()));
    expect_near(run_node(y, {a, b}), expected, 1e-5);
  }
}

TEST(Matmul, GradientMatchesFiniteDifferences) {
  struct {
    Shape a, b;
  } const cases[] = {{{3, 4}, {4, 5}},       {{1, 1}, {1, 1}},    {{2, 3, 4}, {4, 5}},
                     {{2, 3, 4}, {2, 4, 2}}, {{3, 4}, {2, 4, 5}}, {{2, 1, 3, 4}, {3, 4, 2}},
                     {{0, 4}, {4, 5}},       {{3, 0}, {0, 5}},    {{2, 0, 4}, {4, 3}},
                     {{2, 3, 0}, {0, 5}},    {{2, 3, 4}, {4, 0}}, {{2, 2, 3, 0}, {0, 0}}};
  for (const auto& c : cases)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        auto exchanged = [](const Shape& shape, bool exchange) {
          std::vector<int64_t> dims(shape.begin(), shape.end());
          if (exchange) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
          return Shape(dims);
        };
        SCOPED_TRACE(to_string(c.a) + " x " + to_string(c.b) + (ta ? " transpose_a" : "") +
                     (tb ? " transpose_b" : ""));
        check_gradients(
            [&](std::span<const Tensor> x) {
              return matmul(x[0], x[1], {.transpose_a = ta, .transpose_b = tb});
            },
            {random_array(exchanged(c.a, ta), 1), random_array(exchanged(c.b, tb), 2)});
      }
}

TEST(MatmulErrors, SayWhatDoesNotFit) {
  auto expect_refused = [](const TensorType& a, const TensorType& b, const char* piece) {
    Graph graph;
    try {
      matmul(graph.input(0, a, SourceLocation::current()), graph.input(1, b, SourceLocation::current()));
      FAIL() << "accepted, expected: " << piece;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(piece));
      EXPECT_THAT(error.what(), testing::HasSubstr("matmul_test.cc"));
    }
  };
  const DType f = DType::kFloat32;
  expect_refused({f, {2, 3}}, {f, {4, 5}}, "a is 2 x 3 and b is 4 x 5");
  expect_refused({f, {3}}, {f, {3, 5}}, "rank 2 or more");
  expect_refused({f, {2, 2, 3}}, {f, {3, 3, 5}}, "batch axes");
  expect_refused({DType::kInt32, {2, 3}}, {DType::kInt32, {3, 5}}, "float32");
  const Shape many_axes(std::vector<int64_t>(13, 2));
  expect_refused({f, many_axes}, {f, many_axes}, "rank 12 at most");
  // A tall product of two matrices has no such limit.
  const Array a = random_array(many_axes, 1), b = random_array({2, 2}, 2);
  const test::Build product = [](std::span<const Tensor> in) { return matmul(in[0], in[1]); };
  const Array of_matrices = test::evaluate_op(product, {a.reshaped({4096, 2}), b});
  test::expect_close(test::evaluate_op(product, {a, b}), of_matrices.reshaped(many_axes));
}

// A product of constants is computed when the plan is compiled, where no mark could say that its bits depend
// on the number of threads.
TEST(FoldedProduct, HasTheSameBitsForEveryTeam) {
  const Array a = random_array({4, 40000}, 1), b = random_array({40000, 16}, 2);
  Graph graph;
  GraphScope scope(graph);
  const auto here = SourceLocation::current();
  const Tensor y = matmul(graph.constant(a, here), graph.constant(b, here));
  const Array alone = mox::evaluate(std::span(&y, 1), {}, {.threads = 1})[0];
  for (const int threads : {2, 3, 7}) {
    const Array shared = mox::evaluate(std::span(&y, 1), {}, {.threads = threads})[0];
    EXPECT_TRUE(std::ranges::equal(alone.as_bytes(), shared.as_bytes())) << threads << " threads";
  }
}

// More threads than the sums have parts: the columns are cut as well.
TEST(SplitMatmul, HasTheSameKernelAndBitsForEveryTeam) {
  const Array a = random_array({33, 2048}, 1), b = random_array({2048, 1040}, 2);
  Graph graph;
  const Tensor y = matmul(graph.input(0, a.type(), SourceLocation::current()),
                          graph.input(1, b.type(), SourceLocation::current()));
  Kernel kernel;
  const Array alone = run_node(y, {a, b}, {}, 1, &kernel);
  EXPECT_TRUE(kernel.implementation.starts_with("split:")) << kernel.implementation;
  const std::string implementation = kernel.implementation;
  EXPECT_FALSE(kernel.has_bits_by_threads);
  for (const int threads : {2, 8, 9, 20}) {
    const Array shared = run_node(y, {a, b}, {}, threads, &kernel);
    EXPECT_EQ(kernel.implementation, implementation) << threads << " threads";
    EXPECT_TRUE(std::ranges::equal(alone.as_bytes(), shared.as_bytes())) << threads << " threads";
  }
}

}  // namespace
}  // namespace mox::test
