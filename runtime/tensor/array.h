// Array: a dense, row-major tensor of values in host memory. (Symbolic tensors are mox::Tensor, in
// runtime/graph.)
//
// An Array shares its buffer when copied (cheap, like a shared_ptr); `clone` makes an independent one.
// Buffers are aligned to 64 bytes. Reading from several threads is safe; writing needs one owner.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace mox {

// Row-major and plain: the type of a value without its data.
struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;
  size_t bytes() const { return static_cast<size_t>(shape.elements()) * size_of(dtype); }
  bool operator==(const TensorType&) const = default;
};
std::string to_string(const TensorType& type);  // "float32[32, 784]"

// `bytes` of memory, not initialised, aligned to 64 bytes; from 2 MiB on to a huge page of 2 MiB. Throws
// OutOfMemory where the system refuses it, and for more than this process may have in all, which the system
// would give and then end the process for. `purpose` begins the message.
std::shared_ptr<std::byte> allocate_aligned(size_t bytes, std::string_view purpose = "an array");

class Array {
 public:
  Array() = default;                // undefined: no buffer
  explicit Array(TensorType type);  // zero-filled
  Array(DType dtype, Shape shape);  // zero-filled
  // Refers to memory that `owner` keeps alive.
  Array(TensorType type, std::shared_ptr<std::byte> data);

  // From values in row-major order; throws InvalidArgument if their number is not the shape's.
  template <typename T>
  static Array from(Shape shape, std::span<const T> values) {
    return from_bytes({dtype_of<T>, std::move(shape)}, std::as_bytes(values));
  }
  template <typename T>
  static Array from(Shape shape, std::initializer_list<T> values) {
    return from<T>(std::move(shape), std::span<const T>(values.begin(), values.size()));
  }
  template <typename T>
  static Array scalar(T value) {
    return from<T>(Shape{}, {value});
  }
  static Array from_bytes(TensorType type, std::span<const std::byte> bytes);
  // Not initialised: for buffers that are about to be written whole.
  static Array uninitialized(TensorType type);

  bool defined() const { return data_ != nullptr; }
  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  int64_t elements() const { return type_.shape.elements(); }
  size_t bytes() const { return type_.bytes(); }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::span<const std::byte> as_bytes() const { return {data_.get(), bytes()}; }

  // The elements as T. Throws InvalidArgument if T is not the dtype's type.
  template <typename T>
  std::span<T> values() {
    require(dtype_of<T>);
    return {reinterpret_cast<T*>(data_.get()), static_cast<size_t>(elements())};
  }
  template <typename T>
  std::span<const T> values() const {
    require(dtype_of<T>);
    return {reinterpret_cast<const T*>(data_.get()), static_cast<size_t>(elements())};
  }
  // The only element of an array with one element, converted to double. Throws InvalidArgument otherwise.
  double item() const;

  Array clone() const;
  // The same buffer under another shape of as many elements; throws InvalidArgument.
  Array reshaped(Shape shape) const;
  // Rows [begin, end) of the first axis, sharing the buffer; throws InvalidArgument outside [0, shape()[0]].
  Array rows(int64_t begin, int64_t end) const;

 private:
  void require(DType dtype) const;

  TensorType type_;
  std::shared_ptr<std::byte> data_;
};

}  // namespace mox
