// What the tests of boost share: walks in many dimensions, sources in memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "moxing/boost/basis.h"
#include "moxing/boost/snapshots.h"
#include "moxing/formats/npy.h"
#include "runtime/base/random.h"

namespace mox::boost {

inline std::map<std::string, Array> boost_fixture(const std::string& name) {
  return data::read_npz(MOX_SOURCE_DIR "/tests/fixtures/" + name);
}

// Rows of an array as vectors.
class RowSource : public ColumnSource {
 public:
  explicit RowSource(Array rows) : rows_(std::move(rows)) {}
  int64_t vectors() const override { return rows_.shape()[0]; }
  int64_t columns() const override { return rows_.shape()[1]; }
  void read(int64_t vector, int64_t first_column, std::span<float> out) const override {
    const auto all = rows_.values<float>();
    std::copy_n(all.begin() + vector * columns() + first_column, out.size(), out.begin());
  }
  std::string describe(int64_t vector, int64_t column) const override {
    return "row " + std::to_string(vector) + ", column " + std::to_string(column);
  }

 private:
  Array rows_;
};

// A random walk of `vectors` steps in `columns` dimensions.
inline Array random_walk(int64_t vectors, int64_t columns, uint64_t seed = 5) {
  Array rows(DType::kFloat32, {vectors, columns});
  const std::span<float> values = rows.values<float>();
  RandomStream(seed, 1).fill_normal(values, 0, 0, 1);
  for (size_t i = static_cast<size_t>(columns); i < values.size(); ++i)
    values[i] = values[i - static_cast<size_t>(columns)] + 0.1f * values[i];
  return rows;
}

// Snapshots of a network with variables "b" [3] and "layer/w" [2, 1500], one a row of the walk.
inline std::vector<NamedArray> weights_of(const Array& walk, int64_t row) {
  const auto values = walk.values<float>().subspan(static_cast<size_t>(row * walk.shape()[1]));
  return {{"layer/w", Array::from<float>({2, 1500}, values.subspan(3, 3000))},
          {"b", Array::from<float>({3}, values.first(3))}};
}

inline void write_walk(const std::string& directory, const Array& walk) {
  for (int64_t row = 0; row < walk.shape()[0]; ++row)
    write_snapshot(directory, 10 * row, weights_of(walk, row));
}

inline std::vector<float> row_of(const Basis& basis, int64_t component) {
  std::vector<float> row(static_cast<size_t>(basis.own_columns().count));
  basis.read(component, basis.own_columns().first, row);
  return row;
}

}  // namespace mox::boost
