// An operand of an op that takes tensors and numbers alike: `x * 2`, `1 - x`, `maximum(x, 0.5)`.
//
// A number becomes a scalar constant of the other operand's dtype; one that the dtype cannot hold (0.5 next
// to an int32 tensor, 1e39 next to a float32 one) is refused with InvalidArgument when the op is called.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <utility>

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

class Operand {
 public:
  // Implicit on purpose. `where` is the line of the call: an operator cannot take it as a
  // parameter of its own.
  Operand(const Tensor& tensor, SourceLocation where = SourceLocation::current())  // NOLINT
      : tensor_(tensor), where_(where) {}
  template <std::floating_point Number>
  Operand(Number number, SourceLocation where = SourceLocation::current())  // NOLINT
      : is_number_(true), number_(static_cast<double>(number)), where_(where) {}
  template <std::integral Number>
  Operand(Number number, SourceLocation where = SourceLocation::current())  // NOLINT
      : is_number_(true),
        is_integer_(std::signed_integral<Number> || static_cast<int64_t>(number) >= 0),
        number_(static_cast<double>(number)),
        integer_(number),
        where_(where) {}

  bool is_number() const { return is_number_; }
  const Tensor& tensor() const { return tensor_; }  // undefined for a number
  const SourceLocation& where() const { return where_; }

  // This operand as a tensor of the graph of `like`, a number as a constant of its dtype. `op` is
  // named in errors.
  Tensor resolve(const Tensor& like, std::string_view op, SourceLocation where) const;

 private:
  Tensor tensor_;
  bool is_number_ = false, is_integer_ = false;  // is_integer_: of an int64_t
  double number_ = 0;
  int64_t integer_ = 0;
  SourceLocation where_;
};

// Both operands as tensors. Throws InvalidArgument if neither is one.
std::pair<Tensor, Tensor> resolve_operands(const Operand& a, const Operand& b, std::string_view op,
                                           SourceLocation where);

}  // namespace mox
