#include "runtime/tensor/array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/resource_limits.h"

namespace mox {
namespace {

TEST(Shape, CountsElementsAndStrides) {
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{2, 0, 3}).elements(), 0);
  EXPECT_EQ((Shape{2, 3, 4}).strides(), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(to_string(Shape{2, 3}), "[2, 3]");
}

TEST(Shape, RefusesNegativeAndHugeExtents) {
  EXPECT_THROW((Shape{2, -1}), InvalidArgument);
  EXPECT_THROW((Shape{int64_t{1} << 40, int64_t{1} << 40}), InvalidArgument);
  EXPECT_THROW((Shape{Shape::kMostElements + 1}), InvalidArgument);
  EXPECT_THROW((Shape{0, Shape::kMostElements + 1}), InvalidArgument);
}

// Of int64, 2^61 elements would be 2^64 bytes, which is 0.
TEST(TensorType, BytesDoNotWrap) {
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kUInt8}) {
    const TensorType largest{dtype, {Shape::kMostElements / 4, 4}};
    EXPECT_EQ(largest.bytes() / size_of(dtype), static_cast<size_t>(Shape::kMostElements));
  }
}

TEST(Shape, BroadcastsAsNumPy) {
  Shape out;
  ASSERT_TRUE(broadcast_shapes({4, 1, 3}, {2, 1}, &out));
  EXPECT_EQ(out, (Shape{4, 2, 3}));
  ASSERT_TRUE(broadcast_shapes({0}, {1}, &out));
  EXPECT_EQ(out, (Shape{0}));
  EXPECT_FALSE(broadcast_shapes({2}, {3}, &out));
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNaN) {
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f)), 1.0f);
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 0x1p-8f)), 1.0f);  // a tie goes to the even neighbour
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 3 * 0x1p-8f)), 1.0f + 0x1p-6f);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Array, SharesItsBufferAndClonesIt) {
  Array a = Array::from<float>({2, 2}, {1, 2, 3, 4});
  Array shared = a, copy = a.clone();
  a.values<float>()[0] = 9;
  EXPECT_EQ(shared.values<float>()[0], 9);
  EXPECT_EQ(copy.values<float>()[0], 1);
  EXPECT_EQ(a.rows(1, 2).values<float>()[1], 4);
  EXPECT_EQ(Array::scalar<int64_t>(5).item(), 5);
}

TEST(Array, RefusesTheWrongTypeSizeAndRows) {
  Array a(DType::kFloat32, {2, 2});
  EXPECT_THROW(a.values<int32_t>(), InvalidArgument);
  EXPECT_THROW((Array::from<float>({3}, {1, 2})), InvalidArgument);
  EXPECT_THROW(a.rows(1, 3), InvalidArgument);
  EXPECT_THROW(a.reshaped({5}), InvalidArgument);
  EXPECT_THROW(Array().item(), InvalidArgument);
}

TEST(ArrayTest, LargeMemoryStartsOnAHugePage) {
  const auto address = [](const std::shared_ptr<std::byte>& memory) {
    return reinterpret_cast<uintptr_t>(memory.get());
  };
  EXPECT_EQ(address(allocate_aligned(1)) % 64, 0u);
  EXPECT_EQ(address(allocate_aligned((2 << 20) - 1)) % 64, 0u);
  for (size_t bytes : {size_t{2} << 20, (size_t{5} << 20) + 3}) {
    const auto memory = allocate_aligned(bytes);
    EXPECT_EQ(address(memory) % (2 << 20), 0u);
    memory.get()[bytes - 1] = std::byte{1};
  }
}

TEST(ArrayTest, ThatDoesNotFitIntoMemoryIsNamedWithItsSize) {
  const auto elements = static_cast<int64_t>(available_memory());
  try {
    const Array array = Array::uninitialized({DType::kFloat32, {elements}});
    ADD_FAILURE() << "was made";
  } catch (const OutOfMemory& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("float32[" + std::to_string(elements) + "]"), std::string::npos) << said;
    EXPECT_NE(said.find(std::to_string(4 * elements) + " bytes of memory"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace mox
