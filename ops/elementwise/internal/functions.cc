#include "ops/elementwise/internal/functions.h"

#include <cstring>
#include <type_traits>

#include "ops/elementwise/internal/float_functions.h"
#include "runtime/base/error.h"

namespace mox::elementwise {
namespace {

// Eight floats in one AVX register (an extension that GCC and clang share): the loops are vector code by
// construction, also where the output is the same memory as an operand.
using Lanes = float __attribute__((vector_size(32)));
constexpr int64_t kWidth = 8;

struct FloatLoop {
  static Lanes load(const float* from) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
  }
  static void store(float* to, const Lanes& lanes) { std::memcpy(to, &lanes, sizeof lanes); }
};

// f applied over a block: vectors of floats, or single integers.
template <typename Register, int kOperands, typename Function>
void loop(Register* out, const Register* a, [[maybe_unused]] const Register* b,
          [[maybe_unused]] const Register* c, int64_t count) {
  const Function f{};
  if constexpr (std::is_same_v<Register, float>) {
    for (int64_t i = 0; i < count; i += kWidth) {
      if constexpr (kOperands == 1) FloatLoop::store(out + i, f(FloatLoop::load(a + i)));
      if constexpr (kOperands == 2)
        FloatLoop::store(out + i, f(FloatLoop::load(a + i), FloatLoop::load(b + i)));
      if constexpr (kOperands == 3)
        FloatLoop::store(out + i, f(FloatLoop::load(a + i), FloatLoop::load(b + i), FloatLoop::load(c + i)));
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (kOperands == 1) out[i] = f(a[i]);
      if constexpr (kOperands == 2) out[i] = f(a[i], b[i]);
      if constexpr (kOperands == 3) out[i] = f(a[i], b[i], c[i]);
    }
  }
}

template <typename Register, typename Function>
BlockFunction<Register> unary(Function) {
  return loop<Register, 1, Function>;
}
template <typename Register, typename Function>
BlockFunction<Register> binary(Function) {
  return loop<Register, 2, Function>;
}
template <typename Register, typename Function>
BlockFunction<Register> ternary(Function) {
  return loop<Register, 3, Function>;
}

// Integers wrap around: the sum is computed unsigned.
template <typename Value, typename Function>
Value wrapping(Value a, Value b, Function f) {
  if constexpr (std::is_integral_v<Value>) {
    using Unsigned = std::make_unsigned_t<Value>;
    return static_cast<Value>(f(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  } else {
    return f(a, b);
  }
}

template <typename Value>
Value broadcast(int number) {
  if constexpr (std::is_integral_v<Value>) {
    return static_cast<Value>(number);
  } else {
    return Value{} + static_cast<float>(number);
  }
}

template <typename Value, typename Mask>
Value truth(const Value&, const Mask& mask) {
  return mask ? broadcast<Value>(1) : broadcast<Value>(0);
}

// What integers and floats have in common.
template <typename Register>
BlockFunction<Register> arithmetic(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
      return binary<Register>(
          [](auto a, auto b) { return wrapping(a, b, [](auto x, auto y) { return x + y; }); });
    case Opcode::kSub:
      return binary<Register>(
          [](auto a, auto b) { return wrapping(a, b, [](auto x, auto y) { return x - y; }); });
    case Opcode::kMul:
      return binary<Register>(
          [](auto a, auto b) { return wrapping(a, b, [](auto x, auto y) { return x * y; }); });
    case Opcode::kSquare:
      return unary<Register>([](auto a) { return wrapping(a, a, [](auto x, auto y) { return x * y; }); });
    // NaN in either operand gives NaN.
    case Opcode::kMaximum:
      return binary<Register>([](auto a, auto b) { return ((a > b) | (a != a)) ? a : b; });
    case Opcode::kMinimum:
      return binary<Register>([](auto a, auto b) { return ((a < b) | (a != a)) ? a : b; });
    case Opcode::kNeg:
      if constexpr (std::is_same_v<Register, float>) return unary<Register>([](auto a) { return -a; });
      return unary<Register>(
          [](auto a) { return wrapping(decltype(a){}, a, [](auto x, auto y) { return x - y; }); });
    case Opcode::kSign:  // NaN stays NaN
      return unary<Register>([](auto a) {
        using Value = decltype(a);
        const Value zero = broadcast<Value>(0);
        const Value negative = a < zero ? broadcast<Value>(-1) : (a == zero ? zero : a);
        return a > zero ? broadcast<Value>(1) : negative;
      });
    case Opcode::kRelu:
      return unary<Register>([](auto a) { return a < decltype(a){} ? decltype(a){} : a; });
    case Opcode::kGreater:
      return binary<Register>([](auto a, auto b) { return truth(a, a > b); });
    case Opcode::kGreaterEqual:
      return binary<Register>([](auto a, auto b) { return truth(a, a >= b); });
    case Opcode::kLess:
      return binary<Register>([](auto a, auto b) { return truth(a, a < b); });
    case Opcode::kLessEqual:
      return binary<Register>([](auto a, auto b) { return truth(a, a <= b); });
    case Opcode::kEqual:
      return binary<Register>([](auto a, auto b) { return truth(a, a == b); });
    case Opcode::kNotEqual:
      return binary<Register>([](auto a, auto b) { return truth(a, a != b); });
    case Opcode::kLogicalAnd:  // of 0 and 1
      return binary<Register>([](auto a, auto b) { return a < b ? a : b; });
    case Opcode::kLogicalOr:
      return binary<Register>([](auto a, auto b) { return a < b ? b : a; });
    case Opcode::kLogicalNot:
      return unary<Register>([](auto a) { return truth(a, a == decltype(a){}); });
    case Opcode::kSelect:
      return ternary<Register>([](auto c, auto a, auto b) { return c != decltype(c){} ? a : b; });
    default:
      return nullptr;
  }
}

using float_functions::in_double;

template <typename Function>
BlockFunction<float> unary_in_double(Function) {
  return unary<float>([](const Lanes& a) -> Lanes { return in_double(Function{}, a); });
}

BlockFunction<float> transcendental(Opcode opcode) {
  switch (opcode) {
    case Opcode::kDiv:
      return binary<float>([](auto a, auto b) { return a / b; });
    case Opcode::kReciprocal:
      return unary<float>([](auto a) { return broadcast<decltype(a)>(1) / a; });
    case Opcode::kLeakyRelu:
      return binary<float>([](auto a, auto slope) { return a < decltype(a){} ? a * slope : a; });
    case Opcode::kAbs:
      return unary<float>([](const Lanes& a) -> Lanes { return float_functions::magnitude(a); });
    case Opcode::kSqrt:
      return unary<float>([](const Lanes& a) -> Lanes { return float_functions::square_root(a); });
    case Opcode::kRsqrt:
      return unary<float>([](const Lanes& a) -> Lanes { return 1.0f / float_functions::square_root(a); });
    case Opcode::kFloor:
      return unary<float>([](const Lanes& a) -> Lanes { return float_functions::rounded_down(a); });
    case Opcode::kRound:
      return unary<float>([](const Lanes& a) -> Lanes { return float_functions::rounded(a); });
    case Opcode::kExp:
      return unary_in_double([](const auto& x) { return float_functions::exponential(x); });
    case Opcode::kLog:
      return unary_in_double([](const auto& x) { return float_functions::logarithm(x); });
    case Opcode::kSigmoid:
      return unary_in_double([](const auto& x) { return float_functions::sigmoid(x); });
    case Opcode::kTanh:
      return unary_in_double([](const auto& x) { return float_functions::hyperbolic_tangent(x); });
    case Opcode::kSoftplus:
      return unary_in_double([](const auto& x) { return float_functions::softplus(x); });
    case Opcode::kPow:
      return binary<float>([](const Lanes& a, const Lanes& b) -> Lanes {
        return in_double([](const auto& x, const auto& y) { return float_functions::power(x, y); }, a, b);
      });
    default:
      return nullptr;
  }
}

template <typename Register>
BlockFunction<Register> integer_function(Opcode opcode) {
  if (opcode == Opcode::kAbs)
    return unary<Register>(
        [](Register a) { return a < 0 ? wrapping(Register{}, a, [](auto x, auto y) { return x - y; }) : a; });
  return arithmetic<Register>(opcode);
}

template <typename Register>
BlockFunction<Register> existing(BlockFunction<Register> function, Opcode opcode) {
  MOX_ASSERT(function, "no loop for the opcode " + std::string(name_of(opcode)));
  return function;
}

}  // namespace

template <>
BlockFunction<float> block_function<float>(Opcode opcode) {
  auto function = arithmetic<float>(opcode);
  return existing(function ? function : transcendental(opcode), opcode);
}
template <>
BlockFunction<int32_t> block_function<int32_t>(Opcode opcode) {
  return existing(integer_function<int32_t>(opcode), opcode);
}
template <>
BlockFunction<int64_t> block_function<int64_t>(Opcode opcode) {
  return existing(integer_function<int64_t>(opcode), opcode);
}

int relative_cost(Opcode opcode) {
  switch (opcode) {
    case Opcode::kPow:
      return 40;
    case Opcode::kLog:
    case Opcode::kSoftplus:
      return 16;
    case Opcode::kExp:
    case Opcode::kSigmoid:
    case Opcode::kTanh:
      return 8;
    case Opcode::kDiv:
    case Opcode::kSqrt:
    case Opcode::kReciprocal:
    case Opcode::kRsqrt:
      return 4;
    default:
      return 1;
  }
}

}  // namespace mox::elementwise
