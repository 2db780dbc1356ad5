#include "models/zoo/torch_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/zoo/internal/torch_names.h"
#include "moxing/model/variables.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox {
namespace {

constexpr std::string_view kBatches = ".num_batches_tracked";

Array transposed(const Array& matrix) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Array result = Array::uninitialized({DType::kFloat32, {columns, rows}});
  const auto from = matrix.values<float>();
  const auto to = result.values<float>();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      to[column * rows + row] = from[row * columns + column];
  return result;
}

// What all names have before those of the network: wrappers (DataParallel, torch.compile) and modules that
// hold the network put it there. The shortest, for "conv1.weight" ends the name of many a tensor.
std::string prefix_of(std::span<const NamedArray> state,
                      const std::map<std::string, internal::TorchName>& names) {
  const auto counted = [](const NamedArray& tensor) { return tensor.name.ends_with(kBatches); };
  const auto parameter = std::ranges::find_if_not(state, counted);
  if (parameter == state.end()) return "";
  const std::string& first = parameter->name;
  for (size_t at = 0; at != std::string::npos && at < first.size();) {
    std::string prefix = first.substr(0, at);
    if (names.contains(first.substr(at)) &&
        std::ranges::all_of(state, [&](const NamedArray& tensor) { return tensor.name.starts_with(prefix); }))
      return prefix;
    const size_t dot = first.find('.', at);
    at = dot == std::string::npos ? dot : dot + 1;
  }
  return "";
}

bool is_finite(const Array& values) {
  return std::ranges::all_of(values.values<float>(), [](float value) { return std::isfinite(value); });
}

}  // namespace

std::vector<ImportedVariable> import_torch_state(std::string_view model, std::span<const NamedArray> state,
                                                 const std::string& may_lack) {
  const std::map<std::string, internal::TorchName> names = internal::torch_names(model);
  const size_t prefix = prefix_of(state, names).size();
  std::vector<ImportedVariable> result;
  for (const NamedArray& tensor : state) {
    if (tensor.name.ends_with(kBatches)) continue;
    const auto known = names.find(tensor.name.substr(prefix));
    if (known == names.end())
      throw DataError(
          fmt::format("the state has a tensor '{}' ({}), which {} does not have; is it the state of another "
                      "network?",
                      tensor.name, to_string(tensor.value.type()), model));
    if (tensor.value.dtype() != DType::kFloat32)
      throw DataError(fmt::format("the tensor '{}' is {}; expected float32 (save the state after .float())",
                                  tensor.name, to_string(tensor.value.type())));
    if (!is_finite(tensor.value))
      throw DataError(
          fmt::format("the tensor '{}' has values that are not finite: the state is of a "
                      "training that had failed, or damaged",
                      tensor.name));
    const bool transpose = known->second.is_dense_kernel;
    if (transpose && tensor.value.shape().rank() != 2)
      throw DataError(fmt::format("the tensor '{}' is {}; expected a matrix [out, in]", tensor.name,
                                  to_string(tensor.value.type())));
    result.push_back({tensor.name,
                      {known->second.variable, transpose ? transposed(tensor.value) : tensor.value},
                      transpose});
  }
  if (result.size() != names.size()) {
    std::vector<std::string> missing;
    for (const auto& [name, ours] : names) {
      bool found = !may_lack.empty() && is_in_scope(ours.variable, may_lack);
      for (const NamedArray& tensor : state) found = found || tensor.name.substr(prefix) == name;
      if (!found) missing.push_back(name);
    }
    if (!missing.empty())
      throw DataError(fmt::format("the state lacks {} of the {} tensors of {}: {}", missing.size(),
                                  names.size(), model, internal::first_names(missing)));
  }
  return result;
}

std::vector<NamedArray> export_torch_state(std::string_view model, std::span<const NamedArray> variables,
                                           int64_t steps) {
  std::map<std::string_view, const NamedArray*> held;
  for (const NamedArray& variable : variables)
    if (variable.name.starts_with(fmt::format("{}/", model))) held.emplace(variable.name, &variable);
  std::vector<NamedArray> state;
  std::vector<std::string> missing;
  for (const auto& [torch, ours] : internal::torch_names(model)) {
    const auto found = held.find(ours.variable);
    if (found == held.end()) {
      missing.push_back(ours.variable);
      continue;
    }
    const Array& value = found->second->value;
    if (value.dtype() != DType::kFloat32 || (ours.is_dense_kernel && value.shape().rank() != 2))
      throw DataError(fmt::format("the variable '{}' is {}; expected float32{}", ours.variable,
                                  to_string(value.type()), ours.is_dense_kernel ? " [in, out]" : ""));
    state.push_back({torch, ours.is_dense_kernel ? transposed(value) : value});
    constexpr std::string_view kMean = ".running_mean";
    if (torch.ends_with(kMean))
      state.push_back({torch.substr(0, torch.size() - kMean.size()) + ".num_batches_tracked",
                       Array::scalar<int64_t>(steps)});
    held.erase(found);
  }
  if (!missing.empty())
    throw DataError(
        fmt::format("there is no value for {} variables of {}: {}; is it another network's checkpoint?",
                    missing.size(), model, internal::first_names(missing)));
  if (!held.empty())
    throw DataError(fmt::format("'{}' has no counterpart in torchvision's {}", held.begin()->first, model));
  std::ranges::sort(state, {}, &NamedArray::name);
  return state;
}

std::vector<std::pair<std::string, std::string>> torch_variable_names(std::string_view model) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const auto& [torch, ours] : internal::torch_names(model)) result.emplace_back(torch, ours.variable);
  return result;
}

std::vector<std::string> importable_models() { return internal::torch_models(); }

}  // namespace mox
