#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/comm/operation.h"

namespace mox {
namespace {

// Below this, the time of a second phase is worth more than the bytes it saves.
constexpr int64_t kShortElements = 2048;
constexpr int64_t kSegmentAlignment = 16;

uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U)
    return static_cast<uint16_t>((bits >> 16) | 0x40U);                        // NaN stays NaN
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);  // to nearest, ties to even
}
float from_bfloat16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

void add_to(float* __restrict left, const float* __restrict right, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) left[i] += right[i];
}

// A range of floats on its way: as it is, or rounded.
class WireBuffer {
 public:
  WireBuffer(WireType type, int64_t elements)
      : narrow_(type == WireType::kBfloat16 ? static_cast<size_t>(elements) : 0) {}

  std::span<const std::byte> outgoing(const float* values, int64_t elements) {
    if (narrow_.empty()) return std::as_bytes(std::span(values, static_cast<size_t>(elements)));
    std::transform(values, values + elements, narrow_.begin(), to_bfloat16);
    return std::as_bytes(std::span(narrow_).first(static_cast<size_t>(elements)));
  }
  std::span<std::byte> incoming(float* values, int64_t elements) {
    if (narrow_.empty()) return std::as_writable_bytes(std::span(values, static_cast<size_t>(elements)));
    return std::as_writable_bytes(std::span(narrow_).first(static_cast<size_t>(elements)));
  }
  void unpack(float* values, int64_t elements) const {
    if (!narrow_.empty()) std::transform(narrow_.begin(), narrow_.begin() + elements, values, from_bfloat16);
  }

 private:
  std::vector<uint16_t> narrow_;
};

class TreeSumOperation : public Operation {
 public:
  explicit TreeSumOperation(const TreeSum& sum) : sum_(sum) {}

  bool advance(Transport& transport, std::vector<Transport::Request>& requests) override {
    rank_ = transport.rank();
    ranks_ = transport.size();
    if (sum_.wire == WireType::kBfloat16 && phase_ == 0 && ranks_ > 1) round_partial_sums();
    switch (phase_++) {
      case 0:
        exchange(transport, requests);
        return true;
      case 1:
        fold();
        return is_short() ? false : distribute(transport, requests);
      default:
        for (auto& [begin, elements, buffer] : incoming_) buffer.unpack(sum_.result + begin, elements);
        return false;
    }
  }

 private:
  struct Segment {
    int64_t begin, elements;
  };
  struct Incoming {
    int64_t begin, elements;
    WireBuffer buffer;
  };

  bool is_short() const { return sum_.elements <= kShortElements || ranks_ == 1; }

  // Which elements `rank` sums up.
  Segment segment(int rank) const {
    if (is_short()) return {0, sum_.elements};
    const int64_t share = (sum_.elements + ranks_ - 1) / ranks_;
    const int64_t length = (share + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
    const int64_t begin = std::min(length * rank, sum_.elements);
    return {begin, std::min(length, sum_.elements - begin)};
  }

  // Also what stays here is rounded, so that a result does not depend on who sums a segment.
  void round_partial_sums() {
    for (float* partial : sum_.partial_sums)
      for (int64_t i = 0; i < sum_.elements; ++i) partial[i] = from_bfloat16(to_bfloat16(partial[i]));
  }

  void exchange(Transport& transport, std::vector<Transport::Request>& requests) {
    const Segment own = segment(rank_);
    // Peers in an order of each rank's own, so that not all of them call on rank 0 first.
    for (int step = 1; step < ranks_; ++step) {
      const int peer = (rank_ + step) % ranks_;
      const size_t subtrees = maximal_subtrees(sum_.leaves, block_of(sum_.leaves, peer, ranks_)).size();
      for (size_t i = 0; i < subtrees; ++i) {
        staged_.push_back({peer, {}, WireBuffer(sum_.wire, own.elements)});
      }
    }
    TreeSumScratch& scratch = sum_.scratch ? *sum_.scratch : own_scratch_;
    if (scratch.arrays.size() < staged_.size()) scratch.arrays.resize(staged_.size());
    for (size_t i = 0; i < staged_.size(); ++i) {
      scratch.arrays[i].resize(static_cast<size_t>(own.elements));
      staged_[i].values = scratch.arrays[i];
    }
    for (Staged& staged : staged_)
      requests.push_back(transport.receive(staged.peer, sum_.tag,
                                           staged.buffer.incoming(staged.values.data(), own.elements)));
    for (int step = 1; step < ranks_; ++step) {
      const int peer = (rank_ + step) % ranks_;
      const Segment theirs = segment(peer);
      for (const float* partial : sum_.partial_sums) {
        outgoing_.emplace_back(sum_.wire, theirs.elements);
        requests.push_back(transport.send(
            peer, sum_.tag, outgoing_.back().outgoing(partial + theirs.begin, theirs.elements)));
      }
    }
  }

  void fold() {
    const Segment own = segment(rank_);
    std::vector<PartialSum<float*>> stack;
    const auto add = [&](float* left, const float* right) { add_to(left, right, own.elements); };
    for (int rank = 0; rank < ranks_; ++rank) {
      size_t next = 0;  // of the staged arrays of this rank
      const auto subtrees = maximal_subtrees(sum_.leaves, block_of(sum_.leaves, rank, ranks_));
      for (size_t i = 0; i < subtrees.size(); ++i) {
        float* values = nullptr;
        if (rank == rank_) {
          values = sum_.partial_sums[i] + own.begin;
        } else {
          while (staged_[next].peer != rank) ++next;
          Staged& staged = staged_[next++];
          staged.buffer.unpack(staged.values.data(), own.elements);
          values = staged.values.data();
        }
        push_partial_sum(sum_.leaves, stack, {subtrees[i], values}, add);
      }
    }
    MOX_ASSERT(stack.size() == 1, "all leaves together are the root");
    float* result = sum_.result + own.begin;
    if (stack[0].value != result)
      std::memcpy(result, stack[0].value, static_cast<size_t>(own.elements) * sizeof(float));
    if (sum_.wire == WireType::kBfloat16 && ranks_ > 1)
      for (int64_t i = 0; i < own.elements; ++i) result[i] = from_bfloat16(to_bfloat16(result[i]));
    staged_.clear();
    outgoing_.clear();
  }

  bool distribute(Transport& transport, std::vector<Transport::Request>& requests) {
    const Segment own = segment(rank_);
    outgoing_.emplace_back(sum_.wire, own.elements);
    const std::span<const std::byte> mine = outgoing_.back().outgoing(sum_.result + own.begin, own.elements);
    for (int step = 1; step < ranks_; ++step) {
      const int peer = (rank_ + step) % ranks_;
      const Segment theirs = segment(peer);
      incoming_.push_back({theirs.begin, theirs.elements, WireBuffer(sum_.wire, theirs.elements)});
    }
    for (int step = 1; step < ranks_; ++step) {
      const int peer = (rank_ + step) % ranks_;
      Incoming& incoming = incoming_[static_cast<size_t>(step - 1)];
      requests.push_back(transport.receive(
          peer, sum_.tag, incoming.buffer.incoming(sum_.result + incoming.begin, incoming.elements)));
      requests.push_back(transport.send(peer, sum_.tag, mine));
    }
    return true;
  }

  struct Staged {
    int peer;
    std::span<float> values;
    WireBuffer buffer;
  };

  TreeSum sum_;
  TreeSumScratch own_scratch_;
  int rank_ = 0, ranks_ = 1, phase_ = 0;
  std::vector<Staged> staged_;  // other ranks' partial sums of this rank's segment
  std::vector<WireBuffer> outgoing_;
  std::vector<Incoming> incoming_;  // other ranks' segments of the result
};

}  // namespace

LeafRange block_of(int64_t leaves, int rank, int ranks) {
  MOX_ASSERT(leaves % ranks == 0, "every rank has as many leaves");
  const int64_t share = leaves / ranks;
  return {share * rank, share * (rank + 1)};
}

std::unique_ptr<Operation> make_tree_sum(const TreeSum& sum) {
  return std::make_unique<TreeSumOperation>(sum);
}

}  // namespace mox
