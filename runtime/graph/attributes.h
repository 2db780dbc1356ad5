// The constant parameters of a node: strides, axes, coefficients. Kept as named values, so that a plan can be
// printed, compared and hashed without knowing any op.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/tensor/array.h"

namespace mox {

using Attribute =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, DType, Array>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> values) : values_(values) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  // The value of that name. An absent name, or another type, is a fault of the op that asks: it asserts.
  template <typename T>
  const T& get(std::string_view name) const {
    const Attribute* value = find(name);
    if (!value || !std::holds_alternative<T>(*value)) fail(name);
    return std::get<T>(*value);
  }
  void set(std::string name, Attribute value);

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  const Attribute* find(std::string_view name) const;
  [[noreturn]] static void fail(std::string_view name);

  std::vector<std::pair<std::string, Attribute>> values_;
};

std::string to_string(const Attribute& value);
std::string to_string(const Attributes& attributes);  // "strides=[1, 1] padding=SAME"; "" for none

}  // namespace mox
