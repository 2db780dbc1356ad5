// How the weights of a model, one vector of `columns` numbers, are cut: into tiles that a core works on,
// tiles into chunks whose sums are kept apart, and chunks into the slices of the ranks. Tiles and chunks
// depend on the number of columns alone, so that a sum over all columns, taken chunk by chunk in their order,
// has the same bits on any number of threads and ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "runtime/base/function_ref.h"
#include "runtime/base/team.h"

namespace mox::boost {

inline constexpr int64_t kTileColumns = 1024;

struct IndexRange {
  int64_t first = 0, count = 0;
  int64_t end() const { return first + count; }
  bool operator==(const IndexRange&) const = default;
};

class ColumnChunks {
 public:
  explicit ColumnChunks(int64_t columns) : columns_(columns) {
    const int64_t tiles = (columns + kTileColumns - 1) / kTileColumns;
    chunk_ = std::max<int64_t>(1, (tiles + kMostChunks - 1) / kMostChunks) * kTileColumns;
  }

  int64_t columns() const { return columns_; }
  int64_t count() const { return (columns_ + chunk_ - 1) / chunk_; }
  // The columns of a chunk; only the last one's number need not be that of whole tiles.
  IndexRange chunk(int64_t index) const {
    return {index * chunk_, std::min(chunk_, columns_ - index * chunk_)};
  }
  // The chunks of a rank: one behind the other, as even as can be.
  IndexRange chunks_of(int rank, int ranks) const {
    const int64_t first = count() * rank / ranks;
    return {first, count() * (rank + 1) / ranks - first};
  }
  // Their columns.
  IndexRange columns_of(int rank, int ranks) const {
    const IndexRange chunks = chunks_of(rank, ranks);
    const int64_t first = std::min(columns_, chunks.first * chunk_);
    return {first, std::min(columns_, chunks.end() * chunk_) - first};
  }

 private:
  static constexpr int64_t kMostChunks = 256;
  int64_t columns_, chunk_;
};

// Calls body(index) for every index of [0, count), on as many threads as there are, and returns when all are
// done. The body must not throw.
using Workers = std::function<void(int64_t count, FunctionRef<void(int64_t index)> body)>;

inline Workers workers_of(const Team& team) {
  return [team](int64_t count, FunctionRef<void(int64_t)> body) {
    team.parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) body(index);
    });
  };
}

}  // namespace mox::boost
