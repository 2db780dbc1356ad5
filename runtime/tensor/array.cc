#include "runtime/tensor/array.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/base/error.h"
#include "runtime/base/resource_limits.h"
#include "runtime/tensor/refused_memory.h"

namespace mox {

std::string to_string(const TensorType& type) {
  return fmt::format("{}{}", to_string(type.dtype), to_string(type.shape));
}

// Large allocations start on a huge page and ask the kernel for huge pages: kernels walk megabytes in
// strides, and with 4 KiB pages the address translation, which is two-level in a virtual machine, costs more
// than the arithmetic of the memory-bound ones. Only whole huge pages are asked for, so that no memory beyond
// the allocation becomes resident.
std::shared_ptr<std::byte> allocate_aligned(size_t bytes, std::string_view purpose) {
  constexpr size_t kAlwaysAsked = size_t{1} << 30;
  constexpr size_t kAlignment = 64;
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  const size_t rounded = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes >= kAlwaysAsked && bytes > available_memory())
    throw internal::RefusedMemory(fmt::format("{} takes {} bytes of memory, and this process may have {}",
                                              purpose, bytes, available_memory()));
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, rounded) != 0)
    throw internal::RefusedMemory(
        fmt::format("{} takes {} bytes of memory, which the system refuses", purpose, bytes));
  // A refusal (a kernel without huge pages) leaves ordinary pages: slower, not wrong.
  ask_for_huge_pages(memory, bytes);
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

namespace {

std::shared_ptr<std::byte> allocate_for(const TensorType& type) {
  try {
    return allocate_aligned(type.bytes());
  } catch (const internal::RefusedMemory& error) {
    throw internal::RefusedMemory(fmt::format("{}: {}", to_string(type), error.what()));
  }
}

}  // namespace

Array::Array(TensorType type) : type_(std::move(type)), data_(allocate_for(type_)) {
  std::memset(data_.get(), 0, type_.bytes());
}
Array::Array(DType dtype, Shape shape) : Array(TensorType{dtype, std::move(shape)}) {}
Array::Array(TensorType type, std::shared_ptr<std::byte> data)
    : type_(std::move(type)), data_(std::move(data)) {}

Array Array::uninitialized(TensorType type) {
  auto data = allocate_for(type);
  return {std::move(type), std::move(data)};
}

Array Array::from_bytes(TensorType type, std::span<const std::byte> bytes) {
  if (bytes.size() != type.bytes())
    throw InvalidArgument(
        fmt::format("{} takes {} bytes, but {} were given", to_string(type), type.bytes(), bytes.size()));
  Array array = uninitialized(std::move(type));
  if (!bytes.empty()) std::memcpy(array.data(), bytes.data(), bytes.size());
  return array;
}

double Array::item() const {
  if (!defined() || elements() != 1)
    throw InvalidArgument(fmt::format("item() needs an array of one element, this one is {}",
                                      defined() ? to_string(type_) : "undefined"));
  switch (type_.dtype) {
    case DType::kFloat32:
      return values<float>()[0];
    case DType::kBFloat16:
      return static_cast<float>(values<BFloat16>()[0]);
    case DType::kInt32:
      return values<int32_t>()[0];
    case DType::kInt64:
      return values<int64_t>()[0];
    case DType::kUInt8:
      return values<uint8_t>()[0];
    case DType::kBool:
      return values<bool>()[0] ? 1 : 0;
  }
  MOX_ASSERT(false, "every dtype has a case");
}

Array Array::clone() const { return defined() ? from_bytes(type_, as_bytes()) : Array(); }

Array Array::reshaped(Shape shape) const {
  if (shape.elements() != elements())
    throw InvalidArgument(fmt::format("cannot view {} as shape {}: {} elements against {}", to_string(type_),
                                      to_string(shape), elements(), shape.elements()));
  return {TensorType{type_.dtype, std::move(shape)}, data_};
}

Array Array::rows(int64_t begin, int64_t end) const {
  if (type_.shape.rank() < 1 || begin < 0 || begin > end || end > type_.shape[0])
    throw InvalidArgument(fmt::format("rows [{}, {}) do not exist in {}", begin, end, to_string(type_)));
  std::vector<int64_t> dims(type_.shape.begin(), type_.shape.end());
  const size_t row_bytes = type_.shape[0] == 0 ? 0 : bytes() / type_.shape[0];
  dims[0] = end - begin;
  return {TensorType{type_.dtype, Shape(std::move(dims))},
          std::shared_ptr<std::byte>(data_, data_.get() + begin * row_bytes)};
}

void Array::require(DType dtype) const {
  if (!defined() || type_.dtype != dtype)
    throw InvalidArgument(fmt::format("asked for {} elements of an array of {}", to_string(dtype),
                                      defined() ? to_string(type_) : "no type (it is undefined)"));
}

}  // namespace mox
