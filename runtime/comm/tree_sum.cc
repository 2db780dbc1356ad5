#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/comm/add.h"
#include "runtime/comm/operation.h"

namespace mox {
namespace {

// Below this, the time of a second phase is worth more than the bytes it saves.
constexpr int64_t kShortElements = 2048;
// With two ranks it saves no bytes, only half of the adding.
constexpr int64_t kShortElementsOfTwo = 32768;
constexpr int64_t kSegmentAlignment = 16;
// What a rank sums at a time: small enough for a cache, large enough that waiting for it costs little.
constexpr int64_t kSegmentElements = int64_t{1} << 18;

uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U)
    return static_cast<uint16_t>((bits >> 16) | 0x40U);                        // NaN stays NaN
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);  // to nearest, ties to even
}
float from_bfloat16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

bool is_short(int64_t elements, int ranks) {
  return elements <= (ranks == 2 ? kShortElementsOfTwo : kShortElements);
}

// A range of floats on its way: as it is, or rounded.
class WireBuffer {
 public:
  WireBuffer(WireType type, int64_t elements) : narrow_(type == WireType::kBFloat16 ? elements : 0) {}

  std::span<const std::byte> outgoing(const float* values, int64_t elements) {
    if (narrow_.empty()) return std::as_bytes(std::span(values, elements));
    std::transform(values, values + elements, narrow_.begin(), to_bfloat16);
    return std::as_bytes(std::span(narrow_).first(elements));
  }
  std::span<std::byte> incoming(float* values, int64_t elements) {
    if (narrow_.empty()) return std::as_writable_bytes(std::span(values, elements));
    return std::as_writable_bytes(std::span(narrow_).first(elements));
  }
  void unpack(float* values, int64_t elements) const {
    if (!narrow_.empty()) std::transform(narrow_.begin(), narrow_.begin() + elements, values, from_bfloat16);
  }

 private:
  std::vector<uint16_t> narrow_;
};

// The array goes through in chunks, one behind the other: while chunk c travels to those who sum it, the sums
// of chunk c - 1 travel back. What has arrived is summed while it is still in a cache, and the memory for it
// is small.
class TreeSumOperation : public Operation {
 public:
  explicit TreeSumOperation(const TreeSum& sum) : sum_(sum) {}

  bool advance(Transport& transport, std::vector<Transport::Request>& requests) override {
    const int64_t step = step_++;
    if (step == 0) begin(transport);
    // Complete are now the exchange of chunk step - 1 and the distribution of chunk step - 2.
    if (step >= 2) unpack(stage(step - 2));
    if (step < chunks_) exchange(chunk(step), stage(step), transport, requests);
    if (step >= 1 && step <= chunks_) {
      fold(chunk(step - 1), stage(step - 1));
      if (!is_direct_) distribute(chunk(step - 1), stage(step - 1), transport, requests);
    }
    const int64_t arrived = is_direct_ ? step - 1 : step - 2;
    if (sum_.arrived && arrived >= 0 && arrived < chunks_) {
      const Range range = chunk(arrived);
      sum_.arrived({sum_.result + range.begin, static_cast<size_t>(range.elements)});
    }
    return step <= chunks_;
  }

 private:
  struct Range {
    int64_t begin, elements;
  };
  struct Staged {
    int peer;
    std::span<float> values;
    WireBuffer buffer;
  };
  struct Incoming {
    Range range;
    WireBuffer buffer;
  };
  // What is on its way for one chunk.
  struct Stage {
    std::vector<Staged> staged;        // other ranks' partial sums of this rank's segment
    std::vector<WireBuffer> outgoing;  // this rank's, to them; then its segment of the result
    std::vector<Incoming> incoming;    // other ranks' segments of the result
  };

  void begin(Transport& transport) {
    rank_ = transport.rank();
    rank_count_ = transport.size();
    for (int rank = 0; rank < rank_count_; ++rank)
      subtrees_.push_back(maximal_subtrees(sum_.leaves, block_of(sum_.leaves, rank, rank_count_)));
    is_direct_ = is_short(sum_.elements, rank_count_) || rank_count_ == 1 || sum_.root >= 0;
    chunk_elements_ = is_direct_ ? kSegmentElements : kSegmentElements * rank_count_;
    chunks_ = std::max<int64_t>(1, (sum_.elements + chunk_elements_ - 1) / chunk_elements_);
    if (!sum_.scratch) sum_.scratch = &own_scratch_;
    if (sum_.scratch->arrays.size() < kStages * arrivals()) sum_.scratch->arrays.resize(kStages * arrivals());
  }

  // Partial sums that a chunk gets from the other ranks.
  size_t arrivals() const {
    size_t count = 0;
    for (int rank = 0; rank < rank_count_; ++rank)
      if (rank != rank_) count += subtrees_[rank].size();
    return count;
  }

  Range chunk(int64_t number) const {
    const int64_t begin = number * chunk_elements_;
    return {begin, std::min(chunk_elements_, sum_.elements - begin)};
  }
  Stage& stage(int64_t chunk) { return stages_[chunk % std::ssize(stages_)]; }

  // Which elements of a chunk `rank` sums up.
  Range segment(Range chunk, int rank) const {
    if (is_direct_) return {chunk.begin, sum_.root < 0 || sum_.root == rank ? chunk.elements : 0};
    const int64_t share = (chunk.elements + rank_count_ - 1) / rank_count_;
    const int64_t length = (share + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
    const int64_t begin = std::min(length * rank, chunk.elements);
    return {chunk.begin + begin, std::min(length, chunk.elements - begin)};
  }

  // Also what stays here is rounded, so that a result does not depend on who sums a segment.
  void round_partial_sums(Range own) {
    for (float* partial : sum_.partial_sums)
      for (int64_t i = own.begin; i < own.begin + own.elements; ++i)
        partial[i] = from_bfloat16(to_bfloat16(partial[i]));
  }

  void exchange(Range chunk, Stage& stage, Transport& transport, std::vector<Transport::Request>& requests) {
    const Range own = segment(chunk, rank_);
    if (sum_.wire == WireType::kBFloat16 && rank_count_ > 1) round_partial_sums(own);
    stage = {};
    size_t array = (&stage - stages_.data()) * arrivals();
    // Peers in an order of each rank's own, so that not all of them call on rank 0 first.
    for (int distance = 1; distance < rank_count_; ++distance) {
      const int peer = (rank_ + distance) % rank_count_;
      for (size_t i = 0; i < subtrees_[peer].size(); ++i) {
        std::vector<float>& values = sum_.scratch->arrays[array++];
        if (values.size() < static_cast<size_t>(own.elements)) values.resize(own.elements);
        stage.staged.push_back({peer, values, WireBuffer(sum_.wire, own.elements)});
      }
    }
    for (Staged& staged : stage.staged)
      requests.push_back(transport.receive(staged.peer, sum_.tag,
                                           staged.buffer.incoming(staged.values.data(), own.elements)));
    for (int distance = 1; distance < rank_count_; ++distance) {
      const int peer = (rank_ + distance) % rank_count_;
      const Range theirs = segment(chunk, peer);
      for (const float* partial : sum_.partial_sums) {
        stage.outgoing.emplace_back(sum_.wire, theirs.elements);
        requests.push_back(transport.send(
            peer, sum_.tag, stage.outgoing.back().outgoing(partial + theirs.begin, theirs.elements)));
      }
    }
  }

  void fold(Range chunk, Stage& stage) {
    const Range own = segment(chunk, rank_);
    std::vector<PartialSum<float*>> stack;
    const auto add = [&](float* left, const float* right) { add_to(left, right, own.elements); };
    for (int rank = 0; rank < rank_count_; ++rank) {
      size_t next = 0;  // of the staged arrays of this rank
      const auto& subtrees = subtrees_[rank];
      for (size_t i = 0; i < subtrees.size(); ++i) {
        float* values = nullptr;
        if (rank == rank_) {
          values = sum_.partial_sums[i] + own.begin;
        } else {
          while (stage.staged[next].peer != rank) ++next;
          Staged& staged = stage.staged[next++];
          staged.buffer.unpack(staged.values.data(), own.elements);
          values = staged.values.data();
        }
        push_partial_sum(sum_.leaves, stack, {subtrees[i], values}, add);
      }
    }
    MOX_ASSERT(stack.size() == 1, "all leaves together are the root");
    float* result = sum_.result + own.begin;
    if (stack[0].value != result) std::memcpy(result, stack[0].value, own.elements * sizeof(float));
    if (sum_.wire == WireType::kBFloat16 && rank_count_ > 1)
      for (int64_t i = 0; i < own.elements; ++i) result[i] = from_bfloat16(to_bfloat16(result[i]));
    stage = {};
  }

  void distribute(Range chunk, Stage& stage, Transport& transport,
                  std::vector<Transport::Request>& requests) {
    const Range own = segment(chunk, rank_);
    stage.outgoing.emplace_back(sum_.wire, own.elements);
    const std::span<const std::byte> mine =
        stage.outgoing.back().outgoing(sum_.result + own.begin, own.elements);
    for (int distance = 1; distance < rank_count_; ++distance) {
      const Range theirs = segment(chunk, (rank_ + distance) % rank_count_);
      stage.incoming.push_back({theirs, WireBuffer(sum_.wire, theirs.elements)});
    }
    for (int distance = 1; distance < rank_count_; ++distance) {
      const int peer = (rank_ + distance) % rank_count_;
      auto& [range, buffer] = stage.incoming[distance - 1];
      requests.push_back(
          transport.receive(peer, sum_.tag, buffer.incoming(sum_.result + range.begin, range.elements)));
      requests.push_back(transport.send(peer, sum_.tag, mine));
    }
  }

  void unpack(Stage& stage) {
    for (auto& [range, buffer] : stage.incoming) buffer.unpack(sum_.result + range.begin, range.elements);
  }

  // Chunks on their way at the same time: one to be summed, one that has been.
  static constexpr size_t kStages = 2;

  TreeSum sum_;
  TreeSumScratch own_scratch_;
  int rank_ = 0, rank_count_ = 1;
  bool is_direct_ = false;  // who needs the sum gets all, and nothing travels back
  int64_t chunk_elements_ = 1, chunks_ = 1, step_ = 0;
  std::vector<std::vector<LeafRange>> subtrees_;  // of each rank's block
  std::array<Stage, kStages> stages_;
};

}  // namespace

LeafRange block_of(int64_t leaves, int rank, int ranks) {
  MOX_ASSERT(leaves % ranks == 0, "every rank has as many leaves");
  const int64_t share = leaves / ranks;
  return {share * rank, share * (rank + 1)};
}

int64_t tree_sum_messages(int64_t elements, int ranks) {
  if (is_short(elements, ranks)) return ranks - 1;
  const int64_t chunk = kSegmentElements * ranks;
  return (elements + chunk - 1) / chunk * 2 * (ranks - 1);
}

std::unique_ptr<Operation> make_tree_sum(const TreeSum& sum) {
  return std::make_unique<TreeSumOperation>(sum);
}

}  // namespace mox
