// Every function of one float32, of all of them.
#include <immintrin.h>

#include "tests/ops/elementwise/float_functions_testing.h"

// glibc's functions of four doubles, within four units of a double's last place: a millionth of one of
// float32's.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the names of its vector ABI
extern "C" {
__m256d _ZGVdN4v_exp(__m256d);
__m256d _ZGVdN4v_log(__m256d);
__m256d _ZGVdN4v_log1p(__m256d);
__m256d _ZGVdN4v_tanh(__m256d);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace mox::test {
namespace {

__m256d minus(__m256d x) { return _mm256_xor_pd(x, _mm256_set1_pd(-0.0)); }

__m256d sigmoid(__m256d x) {
  const __m256d one = _mm256_set1_pd(1);
  return _mm256_div_pd(one, _mm256_add_pd(one, _ZGVdN4v_exp(minus(x))));
}

__m256d softplus(__m256d x) {
  const __m256d minus_magnitude = _mm256_or_pd(x, _mm256_set1_pd(-0.0));
  const __m256d positive = _mm256_max_pd(_mm256_setzero_pd(), x);  // of a NaN the second one: x
  return _mm256_add_pd(positive, _ZGVdN4v_log1p(_ZGVdN4v_exp(minus_magnitude)));
}

template <__m256d (*function)(__m256d)>
void four_by_four(const float* inputs, double* exact) {
  for (int i = 0; i < kBlock; i += 4)
    _mm256_storeu_pd(exact + i, function(_mm256_cvtps_pd(_mm_loadu_ps(inputs + i))));
}

// The same as one_by_one() in a third of the time or less.
ExactBlock exact_block(const UnaryFunction& function) {
  using elementwise::Opcode;
  const auto each = [](auto exact) {
    return [exact](const float* inputs, double* results) {
      for (int i = 0; i < kBlock; ++i) results[i] = exact(double{inputs[i]});
    };
  };
  switch (function.opcode) {
    case Opcode::kExp:
      return four_by_four<_ZGVdN4v_exp>;
    case Opcode::kLog:
      return four_by_four<_ZGVdN4v_log>;
    case Opcode::kSigmoid:
      return four_by_four<sigmoid>;
    case Opcode::kTanh:
      return four_by_four<_ZGVdN4v_tanh>;
    case Opcode::kSoftplus:
      return four_by_four<softplus>;
    case Opcode::kSqrt:
      return each([](double x) { return std::sqrt(x); });
    case Opcode::kRsqrt:
      return each([](double x) { return 1 / std::sqrt(x); });
    case Opcode::kReciprocal:
      return each([](double x) { return 1 / x; });
    case Opcode::kSquare:
      return each([](double x) { return x * x; });
    case Opcode::kAbs:
      return each([](double x) { return std::abs(x); });
    case Opcode::kNeg:
      return each([](double x) { return -x; });
    case Opcode::kSign:
      return each(exact_sign);
    case Opcode::kRelu:
      return each([](double x) { return x < 0 ? 0 : x; });
    case Opcode::kFloor:
      return each([](double x) { return std::floor(x); });
    case Opcode::kRound:
      return each(exact_round);
    default:
      return one_by_one(function);
  }
}

// Whether all that lies between these two has one number of float32 as its nearest, and no other within 0.55
// units: for a result between them that is another, 0.51 units are too few.
bool have_one_number(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return true;
  const float number = static_cast<float>(a);
  if (std::bit_cast<uint32_t>(number) != std::bit_cast<uint32_t>(static_cast<float>(b))) return false;
  if (a == b) return true;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const double least_unit = std::min(double{std::nextafter(number, kInfinity)} - double{number},
                                     double{number} - double{std::nextafter(number, -kInfinity)});
  return std::abs(a - number) < 0.45 * least_unit && std::abs(b - number) < 0.45 * least_unit;
}

// The same for the check. Of a function that is monotone most blocks have one result: exp, for example, is 0,
// 1 or infinite for nine numbers of ten.
ExactBlock with_blocks_of_one_number(const UnaryFunction& function, const ExactBlock& exact) {
  if (function.direction == 0 || function.most_units < 0.5) return exact;
  return [&function, exact](const float* inputs, double* results) {
    const float begin = inputs[0], end = inputs[kBlock - 1];
    const double first = function.exact(double{begin}), last = function.exact(double{end});
    if (std::signbit(begin) == std::signbit(end) && have_one_number(first, last))
      std::fill(results, results + kBlock, first == last ? first : double{static_cast<float>(first)});
    else if (function.opcode == elementwise::Opcode::kSoftplus && begin > 40 && end > 40)
      std::copy(inputs, inputs + kBlock, results);  // what is added is less than a double's last place
    else
      exact(inputs, results);
  };
}

class AllFloats : public testing::TestWithParam<size_t> {};

TEST_P(AllFloats, AreWithinTheStatedUnitsOfTheExactResult) {
  constexpr uint64_t kPieces = 64, kPiece = (uint64_t{1} << 32) / kPieces;
  const UnaryFunction& function = unary_functions()[GetParam()];
  const ExactBlock exact = with_blocks_of_one_number(function, exact_block(function));
  for (uint64_t piece = 0; piece < kPieces; ++piece)
    expect_exact(function, exact, piece * kPiece, (piece + 1) * kPiece, 1);
}

// Of numbers of every magnitude: what the test above compares with is what the quick ones do.
TEST_P(AllFloats, AreComparedWithTheFunctionsOfTheStandardLibrary) {
  const UnaryFunction& function = unary_functions()[GetParam()];
  float inputs[kBlock];
  double exact[kBlock], reference[kBlock];
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kBlock * uint64_t{1009}) {
    for (uint64_t i = 0; i < kBlock; ++i)
      inputs[i] = std::bit_cast<float>(static_cast<uint32_t>(bits + i * 1009));
    exact_block(function)(inputs, exact);
    one_by_one(function)(inputs, reference);
    for (int i = 0; i < kBlock; ++i) {
      if (std::isnan(reference[i])) {
        ASSERT_TRUE(std::isnan(exact[i])) << function.name << " of " << inputs[i];
      } else if (std::isinf(reference[i]) || reference[i] == 0) {
        ASSERT_EQ(exact[i], reference[i]) << function.name << " of " << inputs[i];
        ASSERT_EQ(std::signbit(exact[i]), std::signbit(reference[i])) << function.name << " of " << inputs[i];
      } else {
        ASSERT_LE(std::abs(exact[i] - reference[i]), 1e-14 * std::abs(reference[i]))
            << function.name << " of " << inputs[i];
      }
    }
  }
}

TEST_P(AllFloats, OfABlockWithOneResultAreThoseOfEach) {
  const UnaryFunction& function = unary_functions()[GetParam()];
  const ExactBlock exact = exact_block(function);
  const ExactBlock at_once = with_blocks_of_one_number(function, exact);
  float inputs[kBlock];
  double each[kBlock], together[kBlock];
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kBlock * uint64_t{1009}) {
    for (uint64_t i = 0; i < kBlock; ++i) inputs[i] = std::bit_cast<float>(static_cast<uint32_t>(bits + i));
    exact(inputs, each);
    at_once(inputs, together);
    for (int i = 0; i < kBlock; ++i)
      ASSERT_EQ(std::isnan(each[i]) ? 0 : std::bit_cast<uint32_t>(static_cast<float>(each[i])),
                std::isnan(together[i]) ? 0 : std::bit_cast<uint32_t>(static_cast<float>(together[i])))
          << function.name << " of " << inputs[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, AllFloats, testing::Range<size_t>(0, unary_functions().size()),
                         [](const auto& info) { return unary_functions()[info.param].name; });

}  // namespace
}  // namespace mox::test
