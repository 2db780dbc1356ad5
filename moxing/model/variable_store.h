// VariableStore: the values of all variables of a process, in host memory. Every plan reads them here;
// optimizers and after-step values write them.
//
// The memory of a variable never moves once it exists. Not synchronised: one thread writes between steps.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/checkpoint/named_array.h"
#include "runtime/graph/graph.h"

namespace mox {

class VariableStore {
 public:
  explicit VariableStore(uint64_t seed) : seed_(seed) {}

  // Values that variables take instead of their initial ones when they are declared (a checkpoint's). A value
  // that no variable asks for stays in `unclaimed`.
  void restore(std::span<const NamedArray> values);

  // From now on variables must come from `restore`: declaring another one throws NotFound, naming the
  // variable and `origin` (the checkpoint) and the names that the checkpoint has and the model has not.
  void require_restored(std::string origin);

  // From now on a restored value of another shape is left aside: its variable is initialised.
  void initialise_other_shapes() { initialises_other_shapes_ = true; }

  // Makes every variable of `graph` that does not exist yet. Throws InvalidArgument if one exists, or was
  // restored, with another type.
  void declare(const Graph& graph);

  // The variable's own memory (an Array that shares it). Throws NotFound naming the nearest name.
  Array get(std::string_view name) const;
  bool has(std::string_view name) const { return variables_.contains(name); }

  std::vector<NamedArray> all() const;         // by name, sharing the memory
  std::vector<std::string> unclaimed() const;  // of restored values that no declared variable took
  // Of variables that were initialised since their restored values have another shape: the name and both
  // types, as in "w (float32[2, 5], in the checkpoint float32[2, 1000])".
  const std::vector<std::string>& other_shapes() const { return other_shapes_; }
  // Those values and those of all variables, by name, sharing the memory: what is known under
  // this run's names.
  std::vector<NamedArray> all_and_unclaimed() const;

 private:
  [[noreturn]] void refuse_missing(const Graph& graph) const;

  uint64_t seed_;
  std::string required_from_;
  bool initialises_other_shapes_ = false;
  std::vector<std::string> other_shapes_;
  std::map<std::string, Array, std::less<>> variables_;
  std::map<std::string, Array, std::less<>> restored_;
};

}  // namespace mox
