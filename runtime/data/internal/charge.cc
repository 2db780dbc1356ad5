#include "runtime/data/internal/charge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace mox::data::internal {

Charge::Charge(std::shared_ptr<MemoryBudget> budget, std::string label, std::string what, std::string advice)
    : budget_(std::move(budget)),
      share_(budget_, MemoryBudget::Share::Of::kCache),
      label_(std::move(label)),
      what_(std::move(what)),
      advice_(std::move(advice)) {}

void Charge::add(size_t bytes) {
  const size_t all = share_.resize(share_.bytes() + bytes);
  if (all <= budget_->bytes()) return;
  const size_t needed = share_.bytes();
  const std::string others =
      all > needed
          ? fmt::format(" beside {} bytes that other operations, kept images and rows of .npy files hold",
                        all - needed)
          : "";
  share_.resize(needed - bytes);
  throw FailedPrecondition(fmt::format(
      "{}: {} needs {} bytes or more{}, but the memory budget of data pipelines is {}; raise {}, or {}",
      label_, what_, needed, others, budget_->describe(), budget_->option(), advice_));
}

void Charge::give_back(size_t bytes) { share_.resize(share_.bytes() - std::min(bytes, share_.bytes())); }

size_t bytes_of(const Payload& payload) {
  // Small elements are mostly what is around their values: the allocator's part of each block, and the
  // counter of a shared one. An array begins on a line of its own.
  constexpr size_t kBlock = 16, kShared = 16, kLine = 64;
  size_t bytes = sizeof(Payload) + kBlock + kShared;
  if (!payload.value.empty()) bytes += kBlock;
  for (const Array& array : payload.value)
    bytes += sizeof(Array) + (array.bytes() + kLine - 1) / kLine * kLine + 2 * (kBlock + kShared);
  if (!payload.names.empty()) bytes += kBlock;
  for (const std::string& name : payload.names) bytes += sizeof(std::string) + kBlock + name.size();
  if (!payload.members.empty()) bytes += kBlock;
  for (const Leaf& member : payload.members) bytes += bytes_of(member);
  return bytes;
}

size_t bytes_of(const Leaf& leaf) { return sizeof(Leaf) + (leaf.payload ? bytes_of(*leaf.payload) : 0); }

}  // namespace mox::data::internal
