// What a step has fetched: numbers as means over all samples, outputs one behind the other.
#include <algorithm>
#include <cstring>

#include "moxing/engine/step/internal/replicated_step_reductions.h"
#include "moxing/engine/step/replicated_step.h"

namespace mox::internal {

void ReplicatedStep::combine_values() {
  const CompiledModel& model = *any_model_;
  values_.resize(model.fetch_names.size());
  if (placement_.logical_replicas == 1) {
    for (size_t f = 0; f < values_.size(); ++f) values_[f] = model.instance->fetched(f);
    return;
  }
  const auto count = static_cast<size_t>(std::ranges::count(current_->is_number, true));
  // Of each replica its samples and its numbers.
  std::vector<double> own(models_.size() * (count + 1), 0.0);
  for (size_t local = 0; local < batches_.size(); ++local) {
    own[local * (count + 1)] = static_cast<double>(batches_[local].size);
    std::ranges::copy(numbers_[local], own.begin() + static_cast<std::ptrdiff_t>(local * (count + 1) + 1));
  }
  const auto bytes = std::as_bytes(std::span(own));
  std::vector<double> sums(count, 0.0);
  double samples = 0;
  for (const std::string& text :
       communicator_.allgather_equal({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
    std::vector<double> theirs(own.size());
    std::memcpy(theirs.data(), text.data(), text.size());
    for (size_t local = 0; local < models_.size(); ++local) {
      const double weight = theirs[local * (count + 1)];
      if (weight == 0) continue;  // there are no numbers
      samples += weight;
      for (size_t i = 0; i < count; ++i) sums[i] += weight * theirs[local * (count + 1) + 1 + i];
    }
  }
  for (size_t f = 0, next = 0; f < values_.size(); ++f)
    if (current_->is_number[f]) values_[f] = Array::scalar(static_cast<float>(sums[next++] / samples));
  combine_outputs();
}

void ReplicatedStep::combine_outputs() {
  const CompiledModel& model = *any_model_;
  for (size_t f = 0, next = 0; f < values_.size(); ++f) {
    if (current_->is_number[f]) continue;
    const Array& sample = model.instance->fetched(f);
    const size_t position = next++;
    if (!current_->is_output[f] || sample.shape().rank() == 0) {
      values_[f] = batches_.empty() ? Array(sample.type()) : arrays_[0][position];
      continue;
    }
    std::vector<int64_t> extents(sample.shape().begin(), sample.shape().end());
    extents[0] = 0;
    for (size_t local = 0; local < batches_.size(); ++local)
      extents[0] += arrays_[local][position].shape()[0];
    Array all(sample.dtype(), Shape(extents));
    std::byte* to = all.data();
    for (size_t local = 0; local < batches_.size(); ++local) {
      const auto bytes = arrays_[local][position].as_bytes();
      to = std::copy(bytes.begin(), bytes.end(), to);
    }
    values_[f] = std::move(all);
  }
}

const Array& ReplicatedStep::array(std::string_view name) const {
  return values_[any_model_->fetch_index(name)];
}

}  // namespace mox::internal
