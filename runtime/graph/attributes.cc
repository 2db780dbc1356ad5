#include "runtime/graph/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/error.h"

namespace mox {

void Attributes::set(std::string name, Attribute value) {
  for (auto& [key, old] : values_) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  values_.emplace_back(std::move(name), std::move(value));
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : values_)
    if (key == name) return &value;
  return nullptr;
}

void Attributes::fail(std::string_view name) {
  MOX_ASSERT(false, fmt::format("no attribute '{}' of the type asked for", name));
}

std::string to_string(const Attribute& value) {
  struct Printer {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(const std::vector<int64_t>& v) const {
      return fmt::format("[{}]", fmt::join(v, ", "));
    }
    std::string operator()(const std::vector<double>& v) const {
      return fmt::format("[{}]", fmt::join(v, ", "));
    }
    std::string operator()(DType v) const { return std::string(mox::to_string(v)); }
    std::string operator()(const Array& v) const {
      return v.elements() == 1 ? fmt::format("{}", v.item()) : "<" + mox::to_string(v.type()) + ">";
    }
  };
  return std::visit(Printer{}, value);
}

std::string to_string(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes) {
    if (!text.empty()) text += ' ';
    text += name + "=" + to_string(value);
  }
  return text;
}

}  // namespace mox
