// The batches of a stream that one pipeline delivers, where several share it: of each group of `size` batches
// those from `first` on. The others are passed over without being made.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/data/internal/leaf.h"
#include "runtime/data/internal/stream.h"

namespace mox::data::internal {

class GroupShare {
 public:
  GroupShare(int64_t size, int64_t first, int64_t count) : size_(size), first_(first), end_(first + count) {}

  // Whether every batch is this pipeline's.
  bool is_whole() const { return size_ == 1; }

  // The next batch of this share, or false at the end of the pass; after the last one of a group the stream
  // stands at the end of the group.
  bool next(Stream& stream, Leaf* out) {
    if (is_whole()) return stream.next(out);
    passed_.resize(stream.arity());
    while (in_group_ < first_ || in_group_ >= end_) {
      if (!stream.next(passed_.data())) return false;
      in_group_ = (in_group_ + 1) % size_;
    }
    if (!stream.next(out)) return false;
    for (++in_group_; in_group_ >= end_ && in_group_ < size_; ++in_group_)
      if (!stream.next(passed_.data())) break;
    in_group_ %= size_;
    passed_.clear();  // of a stream they hold samples
    return true;
  }

 private:
  const int64_t size_, first_, end_;
  int64_t in_group_ = 0;  // where in a group the stream stands
  std::vector<Leaf> passed_;
};

}  // namespace mox::data::internal
