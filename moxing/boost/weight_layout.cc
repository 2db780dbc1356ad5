#include "moxing/boost/weight_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/base/error.h"

namespace mox::boost {

WeightLayout::WeightLayout(std::vector<std::string> names, const std::vector<Shape>& shapes) {
  std::vector<size_t> order(names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) -> const std::string& { return names[i]; });
  for (const size_t i : order) {
    if (!variables_.empty() && variables_.back().name == names[i])
      throw InvalidArgument(fmt::format("two trained variables have the name '{}'", names[i]));
    variables_.push_back({names[i], shapes[i], columns_});
    columns_ += shapes[i].elements();
  }
}

std::string WeightLayout::describe(int64_t column) const {
  const auto after = std::ranges::upper_bound(variables_, column, {}, &Variable::first);
  if (after == variables_.begin()) return fmt::format("weight {}", column);
  const Variable& variable = *std::prev(after);
  return fmt::format("variable '{}', element {}", variable.name, column - variable.first);
}

std::string WeightLayout::difference(const WeightLayout& other) const {
  const auto named = [](const WeightLayout& layout, const std::string& name) {
    return std::ranges::find(layout.variables_, name, &Variable::name);
  };
  for (const Variable& variable : other.variables_) {
    const auto mine = named(*this, variable.name);
    if (mine == variables_.end()) return fmt::format("'{}' is missing", variable.name);
    if (mine->shape != variable.shape)
      return fmt::format("'{}' is {} and not {}", variable.name, to_string(mine->shape),
                         to_string(variable.shape));
  }
  for (const Variable& variable : variables_)
    if (named(other, variable.name) == other.variables_.end())
      return fmt::format("'{}' is there beside what is expected", variable.name);
  return "";
}

FlatArrays::FlatArrays(std::vector<std::span<float>> parts) : parts_(std::move(parts)) {
  int64_t end = 0;
  for (const std::span<float> part : parts_) ends_.push_back(end += part.size());
}

template <typename Visit>
void FlatArrays::visit(int64_t first, int64_t count, Visit each) const {
  size_t part = std::ranges::upper_bound(ends_, first) - ends_.begin();
  for (int64_t done = 0; done < count; ++part) {
    MOX_ASSERT(part < parts_.size(), "columns that there are");
    const int64_t size = parts_[part].size();
    const int64_t begin = first + done - (ends_[part] - size), length = std::min(size - begin, count - done);
    each(parts_[part].data() + begin, done, length);
    done += length;
  }
}

void FlatArrays::read(int64_t first, std::span<float> out) const {
  visit(first, out.size(),
        [&](const float* part, int64_t at, int64_t length) { std::copy_n(part, length, out.begin() + at); });
}

void FlatArrays::write(int64_t first, std::span<const float> values) const {
  visit(first, values.size(),
        [&](float* part, int64_t at, int64_t length) { std::copy_n(values.begin() + at, length, part); });
}

}  // namespace mox::boost
