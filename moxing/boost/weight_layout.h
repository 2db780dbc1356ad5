// The trained variables of a model as one vector: each row-major, one behind the other, in the order of their
// names. This is the order of the columns of pca_mat.npy.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/tensor/array.h"

namespace mox::boost {

class WeightLayout {
 public:
  struct Variable {
    std::string name;
    Shape shape;
    int64_t first = 0;  // its first column
  };

  WeightLayout() = default;
  // In any order; of float32. Throws InvalidArgument for a name that occurs twice.
  WeightLayout(std::vector<std::string> names, const std::vector<Shape>& shapes);

  int64_t columns() const { return columns_; }
  const std::vector<Variable>& variables() const { return variables_; }
  // "layer/weights, element 17".
  std::string describe(int64_t column) const;
  // What `other` has otherwise, for a message ("'w' is [3, 2] and not [3, 4]"); "" if nothing.
  std::string difference(const WeightLayout& other) const;

 private:
  std::vector<Variable> variables_;
  int64_t columns_ = 0;
};

// The values of a layout's variables, where they are.
class FlatArrays {
 public:
  // `parts`: in the layout's order.
  explicit FlatArrays(std::vector<std::span<float>> parts);

  int64_t columns() const { return ends_.empty() ? 0 : ends_.back(); }
  // Columns from `first` on. Threads: any number that write different columns.
  void read(int64_t first, std::span<float> out) const;
  void write(int64_t first, std::span<const float> values) const;

 private:
  template <typename Visit>
  void visit(int64_t first, int64_t count, Visit each) const;

  std::vector<std::span<float>> parts_;
  std::vector<int64_t> ends_;
};

}  // namespace mox::boost
