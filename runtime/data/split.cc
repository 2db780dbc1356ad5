// Dataset::split: two disjoint parts, chosen by a keyed permutation of the positions, of all or
// of each class.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "runtime/data/dataset.h"
#include "runtime/data/internal/node.h"
#include "runtime/data/memory_budget.h"

namespace mox {
namespace {

[[noreturn]] void refuse_split(SourceLocation where, const std::string& text) {
  throw InvalidArgument(fmt::format("split ({}): {}", to_string(where), text));
}

uint64_t checked_size(const Dataset& dataset, double fraction, SourceLocation where) {
  if (!(fraction > 0 && fraction < 1))
    refuse_split(where, fmt::format("the fraction must lie between 0 and 1, it is {}", fraction));
  const int64_t size = dataset.cardinality();
  if (size < 0)
    refuse_split(
        where, fmt::format("the number of samples {}; split before repeat, and data of an unknown size into "
                           "files or folders of their own",
                           size == Dataset::kInfinite ? "has no end" : "is not known"));
  const data::internal::Node& node = *dataset.node();
  if (node.order_changes() || node.selection_that_changes())
    refuse_split(
        where,
        fmt::format("the order of the data changes from pass to pass ({}), and the parts with it; split "
                    "first and shuffle each part, or use shuffle_once",
                    dataset.describe()));
  return size;
}

uint64_t share_of(double fraction, uint64_t size) {
  return static_cast<uint64_t>(std::llround(fraction * size));
}

// The classes of all samples.
std::vector<int64_t> classes_of(const Dataset& dataset, size_t label, SourceLocation where) {
  const auto& signature = dataset.signature();
  if (label >= signature.size())
    refuse_split(where, fmt::format("there is no component {}: a sample has {} (they count from 0)", label,
                                    signature.size()));
  if (signature[label].shape.elements() != 1)
    refuse_split(where, fmt::format("component {} is {}, where one whole number is expected as the class",
                                    label, to_string(signature[label])));
  constexpr int64_t kBatch = 256;
  const auto execution = std::make_shared<data::internal::Execution>();
  execution->memory_budget = MemoryBudget::of_process();
  // A pipeline's caches would keep all data beside those of the run, whose seed and budget are others.
  data::internal::CompileContext context{.execution = execution, .without_caches = true};
  data::internal::Compiled batches = dataset.batch(kBatch).node()->compile(context);
  const std::unique_ptr<data::internal::Stream> stream = batches.take_stream();
  stream->reset(0);
  std::vector<int64_t> classes;
  for (data::internal::Leaf batch; stream->next(&batch);) {
    const Array values = batches.evaluator->make(&batch)[label];
    const auto append = [&]<class T>(T) {
      for (const T value : values.values<T>()) {
        const double number = value;
        if (!(std::floor(number) == number && std::fabs(number) < 9e15))
          refuse_split(where, fmt::format("component {} of sample {} is {}, no whole number: it is no class",
                                          label, classes.size(), number));
        classes.push_back(static_cast<int64_t>(value));
      }
    };
    switch (values.dtype()) {
      case DType::kInt32:
        append(int32_t{});
        break;
      case DType::kInt64:
        append(int64_t{});
        break;
      case DType::kUInt8:
        append(uint8_t{});
        break;
      case DType::kBool:
        append(bool{});
        break;
      case DType::kFloat32:
        append(float{});
        break;
      default:
        refuse_split(where, fmt::format("component {} is {}: no class", label, to_string(signature[label])));
    }
  }
  return classes;
}

// Marks the share of `members` that the first part holds.
void choose(const std::vector<uint64_t>& members, uint64_t count, uint64_t seed, uint64_t stream,
            std::vector<bool>* chosen) {
  const Permutation order(members.size(), mix_hash(seed, stable_hash("split")), stream);
  for (uint64_t i = 0; i < count; ++i) (*chosen)[members[order(i)]] = true;
}

std::vector<uint64_t> all_positions(uint64_t size) {
  std::vector<uint64_t> all(size);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Dataset::Split parts_of(const std::vector<bool>& chosen, double fraction,
                        const std::function<Dataset(std::vector<uint64_t>, bool)>& select,
                        SourceLocation where) {
  std::vector<uint64_t> first, second;
  for (uint64_t i = 0; i < chosen.size(); ++i) (chosen[i] ? first : second).push_back(i);
  if (first.empty() || second.empty())
    refuse_split(where, fmt::format("{} of {} samples leave one part empty", fraction, chosen.size()));
  return {select(std::move(first), true), select(std::move(second), false)};
}

}  // namespace

Dataset::Split Dataset::split(double fraction, uint64_t seed, Where where) const {
  const uint64_t size = checked_size(*this, fraction, where);
  std::vector<bool> chosen(size);
  if (size > 0) choose(all_positions(size), share_of(fraction, size), seed, 0, &chosen);
  return parts_of(
      chosen, fraction,
      [&](std::vector<uint64_t> positions, bool first) {
        return Dataset(data::internal::make_select(
            node_, std::move(positions), fmt::format("split({}, {}, {})", fraction, seed, first ? 1 : 2),
            where));
      },
      where);
}

Dataset::Split Dataset::split(double fraction, uint64_t seed, size_t label, Where where) const {
  const uint64_t size = checked_size(*this, fraction, where);
  // In the order of the parts: a shuffle below a selection has one order, whatever the seed.
  const Dataset in_one_order(data::internal::make_select(node_, all_positions(size), "split", where));
  const std::vector<int64_t> classes = classes_of(in_one_order, label, where);
  // The classes were once read in another order: a position that was saved then is one in other parts.
  const char* order = node_->order_follows_seed() ? " in one order" : "";
  std::map<int64_t, std::vector<uint64_t>> members;
  for (uint64_t i = 0; i < classes.size(); ++i) members[classes[i]].push_back(i);
  std::vector<bool> chosen(size);
  for (const auto& [number, positions] : members) {
    const uint64_t count = positions.size() == 1 ? 1
                                                 : std::clamp<uint64_t>(share_of(fraction, positions.size()),
                                                                        1, positions.size() - 1);
    choose(positions, count, seed, number, &chosen);
  }
  return parts_of(
      chosen, fraction,
      [&](std::vector<uint64_t> positions, bool first) {
        return Dataset(data::internal::make_select(
            node_, std::move(positions),
            fmt::format("split({}, {}, by component {}{}, {})", fraction, seed, label, order, first ? 1 : 2),
            where));
      },
      where);
}

}  // namespace mox
