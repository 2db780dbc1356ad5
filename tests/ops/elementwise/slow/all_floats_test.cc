// Every function of one float32, of all of them.
#include "tests/ops/elementwise/float_functions_testing.h"

namespace mox::test {
namespace {

class AllFloats : public testing::TestWithParam<size_t> {};

TEST_P(AllFloats, AreWithinTheStatedUnitsOfTheExactResult) {
  constexpr uint64_t kPieces = 64, kPiece = (uint64_t{1} << 32) / kPieces;
  const UnaryFunction& function = unary_functions()[GetParam()];
  for (uint64_t piece = 0; piece < kPieces; ++piece)
    expect_exact(function, piece * kPiece, (piece + 1) * kPiece, 1);
}

INSTANTIATE_TEST_SUITE_P(Functions, AllFloats, testing::Range<size_t>(0, unary_functions().size()),
                         [](const auto& info) { return unary_functions()[info.param].name; });

}  // namespace
}  // namespace mox::test
