#include "runtime/data/dataset.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"

namespace mox {

using namespace data::internal;

Dataset Dataset::from_arrays(std::vector<Array> arrays, Where where) {
  return Dataset(make_arrays(std::move(arrays), where));
}

Dataset Dataset::from_source(std::shared_ptr<const RandomAccessSource> source, Where where) {
  return Dataset(make_source(std::move(source), where));
}

Dataset Dataset::from_generator(std::vector<TensorType> signature, std::function<Generator()> factory,
                                Where where) {
  return from_generator(std::move(signature), std::move(factory), kUnknown, where);
}

Dataset Dataset::from_generator(std::vector<TensorType> signature,
                                std::function<Generator(const PassContext&)> factory, Where where) {
  return from_generator(std::move(signature), std::move(factory), kUnknown, where);
}

Dataset Dataset::from_generator(std::vector<TensorType> signature, std::function<Generator()> factory,
                                int64_t size, Where where) {
  std::function<Generator(const PassContext&)> adapted;
  if (factory) adapted = [factory = std::move(factory)](const PassContext&) { return factory(); };
  return from_generator(std::move(signature), std::move(adapted), size, where);
}

Dataset Dataset::from_generator(std::vector<TensorType> signature,
                                std::function<Generator(const PassContext&)> factory, int64_t size,
                                Where where) {
  return Dataset(make_generator(std::move(signature), std::move(factory), size, where));
}

Dataset Dataset::zip(const std::vector<Dataset>& datasets, Where where) {
  std::vector<NodePtr> nodes;
  for (const auto& dataset : datasets) nodes.push_back(dataset.node_);
  return Dataset(make_zip(std::move(nodes), where));
}

Dataset Dataset::interleave(const std::vector<Dataset>& datasets, int64_t cycle, int64_t block, Where where) {
  std::vector<NodePtr> nodes;
  for (const auto& dataset : datasets) nodes.push_back(dataset.node_);
  return Dataset(make_interleave(std::move(nodes), cycle, block, where));
}

Dataset Dataset::map(std::function<Element(const Element&)> function, Where where) const {
  MapFunction adapted;
  if (function)
    adapted = [function = std::move(function)](const SampleContext&, const Element& element) {
      return function(element);
    };
  return map(std::move(adapted), where);
}

Dataset Dataset::map(std::function<Element(const SampleContext&, const Element&)> function,
                     Where where) const {
  return Dataset(make_map(node_, std::nullopt, std::move(function), where));
}

Dataset Dataset::map(std::vector<TensorType> signature,
                     std::function<Element(const SampleContext&, const Element&)> function,
                     Where where) const {
  return Dataset(make_map(node_, std::move(signature), std::move(function), where));
}

Dataset Dataset::map_into(
    std::vector<TensorType> signature,
    std::function<void(const SampleContext&, const Element&, std::span<Array>)> function, Where where) const {
  return Dataset(make_map_into(node_, std::move(signature), std::move(function), where));
}

Dataset Dataset::filter(std::function<bool(const Element&)> predicate, Where where) const {
  return Dataset(make_filter(node_, std::move(predicate), where));
}
Dataset Dataset::shuffle(int64_t buffer_size, Where where) const {
  return Dataset(make_shuffle(node_, buffer_size, where));
}
Dataset Dataset::shuffle_once(int64_t buffer_size, uint64_t seed, Where where) const {
  return Dataset(make_shuffle_once(node_, buffer_size, seed, where));
}
Dataset Dataset::repeat(int64_t count, Where where) const {
  return Dataset(make_repeat(node_, count, where));
}
Dataset Dataset::batch(int64_t size, bool drop_remainder, Where where) const {
  return Dataset(make_batch(node_, size, drop_remainder, where));
}
Dataset Dataset::shard(int64_t index, int64_t count, Where where) const {
  return Dataset(make_shard(node_, index, count, where));
}
Dataset Dataset::take(int64_t count, Where where) const { return Dataset(make_take(node_, count, where)); }
Dataset Dataset::skip(int64_t count, Where where) const { return Dataset(make_skip(node_, count, where)); }
Dataset Dataset::cache(Where where) const { return Dataset(make_cache(node_, where)); }
Dataset Dataset::prefetch(int64_t count, Where where) const {
  return Dataset(make_prefetch(node_, count, where));
}

const std::vector<TensorType>& Dataset::signature() const { return node_->signature(); }
int64_t Dataset::cardinality() const { return node_->cardinality(); }
int64_t Dataset::epoch_size() const { return node_->epoch_size(); }
std::string Dataset::describe() const { return fmt::format("{}", fmt::join(node_->stages(), " | ")); }

}  // namespace mox
