#include "moxing/model/variable_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox {

void VariableStore::restore(std::span<const NamedArray> values) {
  for (const NamedArray& entry : values) {
    try {
      restored_.insert_or_assign(entry.name, entry.value.clone());
    } catch (const OutOfMemory& error) {
      throw OutOfMemory(
          fmt::format("the variable '{}' of a checkpoint does not fit: {}; raise the limit on memory (ulimit "
                      "-v, the control group's), if there is one, or make the model smaller",
                      entry.name, error.what()));
    }
  }
}

void VariableStore::require_restored(std::string origin) { required_from_ = std::move(origin); }

void VariableStore::refuse_missing(const Graph& graph) const {
  std::vector<std::string> missing;
  for (const Tensor& variable : graph.variables()) {
    const VariableSpec& spec = graph.spec(variable);
    if (!variables_.contains(spec.name) && !restored_.contains(spec.name))
      missing.push_back(fmt::format("{} (made at {})", spec.name, to_string(spec.where)));
  }
  throw NotFound(fmt::format(
      "the checkpoint '{}' has no value for {} of the model's {} variables: {}. It has no counterpart in the "
      "model for: {}. Was it written by another model?",
      required_from_, missing.size(), graph.variables().size(), internal::first_names(missing),
      internal::first_names(unclaimed())));
}

namespace {

Array initial_value(const VariableSpec& spec, uint64_t seed) {
  try {
    return spec.initial_value(seed);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(fmt::format("the variable '{}' made at {} does not fit: {}; make the model smaller",
                                  spec.name, to_string(spec.where), error.what()));
  }
}

}  // namespace

void VariableStore::declare(const Graph& graph) {
  for (const Tensor& variable : graph.variables()) {
    const VariableSpec& spec = graph.spec(variable);
    if (auto existing = variables_.find(spec.name); existing != variables_.end()) {
      if (existing->second.type() != spec.type)
        throw InvalidArgument(fmt::format(
            "the variable '{}' made at {} is {}, but it is {} elsewhere in this run; model_fn must build the "
            "same variables in every mode and for every batch size",
            spec.name, to_string(spec.where), to_string(spec.type), to_string(existing->second.type())));
      continue;
    }
    auto restored = restored_.find(spec.name);
    if (restored == restored_.end()) {
      if (!required_from_.empty()) refuse_missing(graph);
      variables_.emplace(spec.name, initial_value(spec, seed_));
      continue;
    }
    if (const TensorType& before = restored->second.type(); before != spec.type) {
      const bool is_other_shape = before.dtype == spec.type.dtype;
      if (!initialises_other_shapes_ || !is_other_shape)
        throw InvalidArgument(
            fmt::format("the checkpoint has '{}' as {}, the model (at {}) as {}; start from another "
                        "log_dir, or make the model as it was{}",
                        spec.name, to_string(before), to_string(spec.where), to_string(spec.type),
                        is_other_shape && required_from_.empty()
                            ? ", or have it begin anew with --on_shape_mismatch=initialise"
                            : ""));
      other_shapes_.push_back(
          fmt::format("{} ({}, in the checkpoint {})", spec.name, to_string(spec.type), to_string(before)));
      variables_.emplace(spec.name, initial_value(spec, seed_));
      restored_.erase(restored);
      continue;
    }
    variables_.emplace(spec.name, std::move(restored->second));
    restored_.erase(restored);
  }
}

Array VariableStore::get(std::string_view name) const {
  auto found = variables_.find(name);
  if (found == variables_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, value] : variables_) names.push_back(known);
    throw NotFound(fmt::format(
        "no variable '{}'; {}", name,
        names.empty() ? "there are none yet"
                      : fmt::format("the nearest name is '{}'", internal::nearest_name(name, names))));
  }
  return found->second;
}

std::vector<NamedArray> VariableStore::all() const {
  std::vector<NamedArray> result;
  for (const auto& [name, value] : variables_) result.push_back({name, value});
  return result;
}

std::vector<NamedArray> VariableStore::all_and_unclaimed() const {
  auto values = variables_;
  values.insert(restored_.begin(), restored_.end());
  std::vector<NamedArray> result;
  for (const auto& [name, value] : values) result.push_back({name, value});
  return result;
}

std::vector<std::string> VariableStore::unclaimed() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : restored_) names.push_back(name);
  return names;
}

}  // namespace mox
