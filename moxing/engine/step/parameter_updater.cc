#include "moxing/engine/step/parameter_updater.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "moxing/optimizers/gradient_clipping.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

constexpr const char* kKeepLess =
    "raise the limit, if one is named, choose an optimizer that keeps less, or make the model smaller";

Array initial_slot(const std::string& variable, const SlotSpec& spec, const TensorType& type) {
  try {
    Array slot(type);
    std::ranges::fill(slot.values<float>(), spec.initial_value);
    return slot;
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(
        fmt::format("what the optimizer keeps for the variable '{}' as '{}' does not fit: {}; {}", variable,
                    spec.name, error.what(), kKeepLess));
  }
}

Array copy_of_kept(const NamedArray& slot) {
  try {
    return slot.value.clone();
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(fmt::format("what the optimizer has kept in a checkpoint as '{}' does not fit: {}; {}",
                                  slot.name, error.what(), kKeepLess));
  }
}

}  // namespace

ParameterUpdater::ParameterUpdater(std::unique_ptr<Optimizer> optimizer, VariableOf variable,
                                   const KeptOptimizer& kept, const Team& team, LossScale loss_scale)
    : optimizer_(std::move(optimizer)),
      slot_specs_(optimizer_->slots()),
      variable_(std::move(variable)),
      team_(team),
      kept_updates_(kept.updates),
      kept_missed_(kept.missed),
      loss_scale_(std::move(loss_scale)) {
  for (const NamedArray& slot : kept.slots) kept_slots_.emplace(slot.name, copy_of_kept(slot));
}

std::vector<size_t> ParameterUpdater::declare(std::span<const std::string> variables) {
  std::vector<size_t> numbers;
  for (const std::string& name : variables) {
    auto [entry, is_new] = numbers_.try_emplace(name, parameters_.size());
    numbers.push_back(entry->second);
    if (!is_new) continue;
    Parameter parameter;
    parameter.name = name;
    parameter.value = variable_(name);
    parameter.settings = optimizer_->parameter_settings(name, parameter.value.shape());
    if (!slot_specs_.empty()) parameter.missed = kept_updates_;
    for (const SlotSpec& spec : slot_specs_) {
      auto kept = kept_slots_.find(name + '/' + spec.name);
      if (kept == kept_slots_.end()) {
        parameter.slots.push_back(initial_slot(name, spec, parameter.value.type()));
      } else {
        if (kept->second.type() != parameter.value.type())
          throw InvalidArgument(
              fmt::format("the checkpoint has the optimizer slot '{}' as {}, but the variable is {}",
                          kept->first, to_string(kept->second.type()), to_string(parameter.value.type())));
        parameter.slots.push_back(std::move(kept->second));
        kept_slots_.erase(kept);
        parameter.missed = kept_missed(name);
      }
      parameter.slot_spans.push_back(parameter.slots.back().values<float>());
    }
    parameters_.push_back(std::move(parameter));
  }
  return numbers;
}

void ParameterUpdater::begin_step(const StepMoment& moment, int64_t left_out) {
  learning_rate_ =
      optimizer_->learning_rate(moment.step, moment.steps_per_epoch) * moment.learning_rate_multiplier;
  update_number_ = moment.step + 1 - left_out;
  for (; begun_ < parameters_.size(); ++begun_) parameters_[begun_].missed += missed_here(update_number_ - 1);
}

void ParameterUpdater::pass_over_step() {
  if (slot_specs_.empty()) return;
  for (Parameter& parameter : parameters_) ++parameter.missed;
}

void ParameterUpdater::apply(size_t number, std::span<const float> gradient, double gradient_scale,
                             const Team& team) {
  Parameter& parameter = parameters_[number];
  update(parameter, parameter.value.values<float>(), gradient, parameter.slot_spans, gradient_scale, team);
}

void ParameterUpdater::update(const Parameter& parameter, std::span<float> value,
                              std::span<const float> gradient, std::span<const std::span<float>> slots,
                              double gradient_scale, const Team& team) const {
  optimizer_->apply({.name = parameter.name,
                     .value = value,
                     .gradient = gradient,
                     .slots = slots,
                     .learning_rate = learning_rate_ * parameter.settings.learning_rate_multiplier,
                     .step = update_number_ - parameter.missed,
                     .gradient_scale = gradient_scale,
                     .weight_decay = parameter.settings.weight_decay},
                    team);
}

bool ParameterUpdater::takes_parts() const {
  return optimizer_->is_elementwise() && !needs_all_gradients() && slot_specs_.size() <= kMostSlots;
}

void ParameterUpdater::apply_part(size_t number, int64_t first, std::span<const float> gradient,
                                  double gradient_scale) {
  Parameter& parameter = parameters_[number];
  const auto part = [&](std::span<float> whole) { return whole.subspan(first, gradient.size()); };
  std::array<std::span<float>, kMostSlots> slots;
  for (size_t i = 0; i < parameter.slot_spans.size(); ++i) slots[i] = part(parameter.slot_spans[i]);
  update(parameter, part(parameter.value.values<float>()), gradient,
         std::span(slots).first(parameter.slot_spans.size()), gradient_scale, Team(1));
}

void ParameterUpdater::expect_part(size_t number, int64_t first, int64_t count) const {
  const Parameter& parameter = parameters_[number];
  constexpr int64_t kCacheLine = 64 / sizeof(float);
  const auto fetch = [&](const float* values) {
    for (int64_t i = 0; i < count; i += kCacheLine) __builtin_prefetch(values + first + i, 1, 2);
  };
  fetch(parameter.value.values<float>().data());
  for (std::span<float> slot : parameter.slot_spans) fetch(slot.data());
}

std::optional<double> ParameterUpdater::common_scale(std::span<const std::span<const float>> gradients,
                                                     double gradient_scale, bool clips) {
  double scale = gradient_scale / loss_scale_.scale();
  if (loss_scale_.may_leave_out()) {
    const bool finite =
        std::ranges::all_of(gradients, [&](const auto& gradient) { return are_finite(gradient, team_); });
    if (!loss_scale_.accepts(finite)) return std::nullopt;
  }
  if (const std::optional<double> limit = optimizer_->global_norm_limit(); limit && clips) {
    std::vector<double> squares;
    for (const auto& gradient : gradients) squares.push_back(sum_of_squares(gradient, team_));
    scale *= clipping_scale(global_norm(squares) * scale, *limit);
  }
  return scale;
}

const std::string* ParameterUpdater::first_not_finite() const {
  for (const Parameter& parameter : parameters_)
    if (!are_finite(parameter.value.values<float>(), team_)) return &parameter.name;
  return nullptr;
}

std::vector<NamedArray> ParameterUpdater::slots() const {
  std::vector<NamedArray> result;
  for (const Parameter& parameter : parameters_)
    for (size_t i = 0; i < slot_specs_.size(); ++i)
      result.push_back({parameter.name + '/' + slot_specs_[i].name, parameter.slots[i]});
  for (const auto& [name, value] : kept_slots_) result.push_back({name, value});
  return result;
}

std::map<std::string, int64_t> ParameterUpdater::missed_updates(int64_t global_step) const {
  std::map<std::string, int64_t> result;
  if (slot_specs_.empty()) return result;
  const int64_t here = missed_here(global_step - loss_scale_.skipped_steps());
  for (size_t i = 0; i < parameters_.size(); ++i)
    result[parameters_[i].name] = parameters_[i].missed + (i < begun_ ? 0 : here);
  const std::string end = '/' + slot_specs_[0].name;
  for (const auto& [name, value] : kept_slots_)
    if (name.ends_with(end)) {
      const std::string variable = name.substr(0, name.size() - end.size());
      result[variable] = kept_missed(variable) + here;
    }
  std::erase_if(result, [](const auto& missed) { return missed.second == 0; });
  return result;
}

int64_t ParameterUpdater::kept_missed(const std::string& variable) const {
  const auto kept = kept_missed_.find(variable);
  return kept == kept_missed_.end() ? 0 : kept->second;
}

}  // namespace mox::internal
