#include "ops/elementwise/operand.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/graph/graph.h"
#include "runtime/tensor/float32_range.h"

namespace mox {
namespace {

[[noreturn]] void refuse(std::string_view op, const std::string& number, const Tensor& like,
                         SourceLocation where) {
  throw InvalidArgument(
      fmt::format("{} at {}: the number {} is not a value of {}, the dtype of '{}'; cast the tensor, "
                  "or write another number",
                  op, to_string(where), number, to_string(like.dtype()), like.name()));
}

template <typename Integer>
Array integer_constant(bool fits, int64_t value, const auto& refuse_it) {
  if (!fits || value < std::numeric_limits<Integer>::min() || value > std::numeric_limits<Integer>::max())
    refuse_it();
  return Array::scalar(static_cast<Integer>(value));
}

}  // namespace

Tensor Operand::resolve(const Tensor& like, std::string_view op, SourceLocation where) const {
  if (!is_number_) return tensor_;
  auto refuse_it = [&] { refuse(op, fmt::format("{}", number_), like, where); };
  if (is_floating(like.dtype()) && overflows_float32(number_)) refuse_it();
  const bool whole = is_integer_ || (std::trunc(number_) == number_ && std::abs(number_) < 0x1p63);
  const int64_t integer = is_integer_ ? integer_ : (whole ? static_cast<int64_t>(number_) : 0);
  Array value;
  switch (like.dtype()) {
    case DType::kFloat32:
      value = Array::scalar(static_cast<float>(number_));
      break;
    case DType::kBFloat16:
      value = Array::scalar(BFloat16(static_cast<float>(number_)));
      break;
    case DType::kInt32:
      value = integer_constant<int32_t>(whole, integer, refuse_it);
      break;
    case DType::kInt64:
      value = integer_constant<int64_t>(whole, integer, refuse_it);
      break;
    case DType::kUInt8:
      value = integer_constant<uint8_t>(whole, integer, refuse_it);
      break;
    case DType::kBool:
      if (number_ != 0 && number_ != 1) refuse_it();
      value = Array::scalar(number_ == 1);
      break;
  }
  return like.node()->graph->constant(std::move(value), where);
}

std::pair<Tensor, Tensor> resolve_operands(const Operand& a, const Operand& b, std::string_view op,
                                           SourceLocation where) {
  for (const Operand* operand : {&a, &b})
    if (!operand->is_number() && !operand->tensor().defined())
      throw InvalidArgument(fmt::format("{} at {}: an operand is an undefined tensor", op, to_string(where)));
  if (a.is_number() && b.is_number())
    throw InvalidArgument(
        fmt::format("{} at {}: expected at least one tensor; given two numbers", op, to_string(where)));
  const Tensor& like = a.is_number() ? b.tensor() : a.tensor();
  return {a.resolve(like, op, where), b.resolve(like, op, where)};
}

}  // namespace mox
