// The basis P of a subspace of weights: k orthonormal rows, of which a rank keeps the columns of
// its slice (column_chunks.h).
//
// In memory P lies in tiles of kTileColumns columns, the k rows of a tile one behind the other, so that each
// of the two products of a step reads it once from its beginning to its end. The last tile is filled
// up with zeros.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "moxing/boost/column_chunks.h"
#include "runtime/comm/communicator.h"
#include "runtime/tensor/array.h"

namespace mox::boost {

// At most so many rows: what is kept for each on the stack of a thread that works on a tile.
inline constexpr int64_t kMostComponents = 1024;

class Basis {
 public:
  // `columns`: of all ranks. `dtype`: float32, or bfloat16 for half of the memory. All values are zero at
  // first. Throws InvalidArgument for other dtypes and for a number of components
  // outside [1, kMostComponents].
  Basis(int64_t components, int64_t columns, int rank, int ranks, DType dtype = DType::kFloat32);

  int64_t components() const { return components_; }
  const ColumnChunks& chunks() const { return chunks_; }
  IndexRange own_chunks() const { return own_chunks_; }
  IndexRange own_columns() const { return own_columns_; }
  DType dtype() const { return panels_.dtype(); }
  size_t bytes() const { return panels_.bytes(); }

  // Row `component` of the own columns from `first_column` on (counted in all). Ranges may cross tiles.
  void write(int64_t component, int64_t first_column, std::span<const float> values);
  void read(int64_t component, int64_t first_column, std::span<float> out) const;

  // Tile number `tile` holds own columns from own_columns().first + tile * kTileColumns on. Arrays of columns
  // have kTileColumns elements.
  //
  // Adds to `sums` the products of the tile's rows with x.
  void add_products(int64_t tile, const float* x, std::span<double> sums) const;
  // u = tile' * a, v = tile' * b, reading the tile once.
  void combine(int64_t tile, std::span<const float> a, std::span<const float> b, float* u, float* v) const;

  // Equal exactly for equal values, dtypes and shapes (up to the chance of a checksum): 16 hexadecimal
  // digits. All ranks call it together.
  std::string identity(Communicator& ranks, const Workers& workers) const;

 private:
  // Of an element among the values.
  size_t offset(int64_t component, int64_t column) const;

  int64_t components_;
  ColumnChunks chunks_;
  IndexRange own_chunks_, own_columns_;
  Array panels_;  // [panels, components, 16]
};

}  // namespace mox::boost
