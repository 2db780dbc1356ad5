#include "moxing/engine/step/step_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "runtime/base/error.h"
#include "runtime/base/function_ref.h"
#include "runtime/comm/allgather_values.h"

namespace mox::internal {
namespace {

Array of_replicas(FunctionRef<Array()> make) {
  try {
    return make();
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(
        fmt::format("what the replicas of a step give, which is copied from each: {}: put less into "
                    "output_info and log_info, or use a smaller batch_size",
                    error.what()));
  }
}

}  // namespace

StepValues::Kinds StepValues::kinds_of(const CompiledModel& model) {
  std::unordered_set<std::string_view> outputs;
  for (const auto& [name, tensor] : model.spec.output_info) outputs.insert(name);
  Kinds kinds;
  for (size_t f = 0; f < model.fetch_names.size(); ++f) {
    kinds.is_output.push_back(outputs.contains(model.fetch_names[f]));
    kinds.is_number.push_back(!kinds.is_output.back() && model.instance->fetched(f).elements() == 1);
  }
  return kinds;
}

void StepValues::begin_step(const Kinds& kinds, std::span<const Batch> batches, size_t replicas) {
  kinds_ = &kinds;
  batches_ = batches;
  numbers_.assign(replicas, {});
  arrays_.assign(replicas, {});
}

void StepValues::keep(size_t local, const PlanInstance& instance) {
  for (size_t f = 0; f < kinds_->is_number.size(); ++f) {
    const Array& value = instance.fetched(f);
    if (kinds_->is_number[f]) {
      numbers_[local].push_back(value.item());
    } else {
      arrays_[local].push_back(of_replicas([&] { return value.clone(); }));
    }
  }
}

void StepValues::take(const PlanInstance& instance) {
  values_.resize(kinds_->is_number.size());
  for (size_t f = 0; f < values_.size(); ++f) values_[f] = instance.fetched(f);
}

void StepValues::combine(const PlanInstance& instance, Communicator& ranks) {
  values_.resize(kinds_->is_number.size());
  const size_t count = std::ranges::count(kinds_->is_number, true);
  const std::vector<double> means = means_over_samples(numbers_, count, ranks);
  for (size_t f = 0, next = 0; f < values_.size(); ++f)
    if (kinds_->is_number[f]) values_[f] = Array::scalar(static_cast<float>(means[next++]));
  combine_outputs(instance);
}

std::vector<double> StepValues::means_over_samples(const std::vector<std::vector<double>>& numbers,
                                                   size_t count, Communicator& ranks) const {
  // Of each replica its samples and its numbers: as many on each rank.
  const size_t entries = count + 1;
  std::vector<double> own(numbers.size() * entries, 0.0);
  for (size_t local = 0; local < batches_.size(); ++local) {
    const std::span<double> entry = std::span(own).subspan(local * entries, entries);
    entry[0] = batches_[local].size;
    std::ranges::copy(numbers[local], entry.begin() + 1);
  }
  std::vector<double> sums(count, 0.0);
  double samples = 0;
  for (const std::vector<double>& theirs : allgather_equal_values(ranks, own)) {
    for (size_t local = 0; local < numbers.size(); ++local) {
      const double weight = theirs[local * entries];
      if (weight == 0) continue;  // there are no numbers
      samples += weight;
      for (size_t i = 0; i < count; ++i) sums[i] += weight * theirs[local * entries + 1 + i];
    }
  }
  for (double& sum : sums) sum /= samples;
  return sums;
}

void StepValues::combine_outputs(const PlanInstance& instance) {
  for (size_t f = 0, next = 0; f < values_.size(); ++f) {
    if (kinds_->is_number[f]) continue;
    const Array& sample = instance.fetched(f);
    const size_t position = next++;
    if (!kinds_->is_output[f] || sample.shape().rank() == 0) {
      values_[f] = batches_.empty() ? Array(sample.type()) : arrays_[0][position];
      continue;
    }
    std::vector<int64_t> extents(sample.shape().begin(), sample.shape().end());
    extents[0] = 0;
    for (size_t local = 0; local < batches_.size(); ++local)
      extents[0] += arrays_[local][position].shape()[0];
    Array all = of_replicas([&] { return Array(sample.dtype(), Shape(extents)); });
    std::byte* to = all.data();
    for (size_t local = 0; local < batches_.size(); ++local) {
      const auto bytes = arrays_[local][position].as_bytes();
      to = std::copy(bytes.begin(), bytes.end(), to);
    }
    values_[f] = std::move(all);
  }
}

}  // namespace mox::internal
