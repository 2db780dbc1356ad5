// The two-phase kernel interface.
//
// Phase 1, compile: an op is asked once per node for a Kernel. It sees the layouts in which its inputs exist
// so far, chooses an implementation, and answers with the layouts that it wants for its inputs and produces
// for its outputs, the scratch memory it needs, and what may share memory. The compiler inserts layout
// conversions and plans the memory.
//
// Phase 2, run: `run` is called every step with resolved pointers. No decision, no allocation, no lock.
//
// A plan is compiled once and instantiated per device; `instantiate` is called once per device and its result
// is used by that device's thread alone, so it may own state (oneDNN memory objects). It must not keep
// results between runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/team.h"
#include "runtime/graph/layout.h"
#include "runtime/graph/node.h"

namespace mox {

// What those who compile a graph ask of the kernels that are chosen: words which the ops that heed them
// define, and which the compiler only passes on.
class KernelHints {
 public:
  KernelHints() = default;
  KernelHints(std::initializer_list<std::string_view> words) : words_(words.begin(), words.end()) {}

  bool has(std::string_view word) const {
    return std::find(words_.begin(), words_.end(), word) != words_.end();
  }

 private:
  std::vector<std::string> words_;
};

// What a kernel gets to see when it is chosen.
struct KernelRequest {
  const Node& node;
  std::vector<Layout> input_layouts;  // in which layout each input exists; a kernel may ask for another
  // a variable or constant: converting it costs a pass over memory every step
  std::vector<bool> input_is_stored;
  const Team& team;        // the team that will run it
  KernelHints hints = {};  // CompileOptions::hints
};

// Takes a gradient in parts, elements counted in row-major order. Called by any thread of the team, several
// at a time.
class PartListener {
 public:
  virtual ~PartListener() = default;
  // The calling thread will soon hand over these elements: what belongs to them may be fetched
  // into its cache.
  virtual void expect(int64_t first, int64_t count) const = 0;
  // Elements [first, first + values.size()), once for each element; the values are gone when it returns.
  virtual void take(int64_t first, std::span<const float> values) const = 0;
};

// What a kernel gets when it runs. Pointers are aligned to 64 bytes, unless a caller's own memory
// is passed in.
struct KernelArguments {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* scratch;
  const Team& team;
  uint64_t seed;                        // of the run: random ops key their streams by (seed, node, step)
  int64_t step;                         // global step, the same on every device
  const PartListener* parts = nullptr;  // for Kernel::instantiate_in_parts alone

  template <typename T>
  const T* input(int i) const {
    return reinterpret_cast<const T*>(inputs[i]);
  }
  template <typename T>
  T* output(int i) const {
    return reinterpret_cast<T*>(outputs[i]);
  }
};

using KernelFunction = std::function<void(const KernelArguments&)>;

struct Kernel {
  std::vector<Layout> input_layouts;   // required; one an input
  std::vector<Layout> output_layouts;  // produced; one an output
  size_t scratch_bytes = 0;            // uninitialised memory during `run`
  // Output `first` may use the memory of input `second` (same bytes; read before written, element by
  // element). The planner does it when that input is not needed later, and not if the same memory is also
  // another input of the step for which `first` has no entry here.
  std::vector<std::pair<int, int>> in_place;
  // >= 0: output 0 is input `alias` under another shape; nothing runs and `instantiate` stays empty.
  int alias = -1;
  std::string implementation;            // for the printed plan: "eigen", "jit:avx512_core", "loop"
  double floating_point_operations = 0;  // per run, multiply and add counted separately; 0 = not stated
  // Whether `instantiate` gives other bits on a team of another size: it cuts a sum by the number of threads,
  // and floating-point addition is not associative. Most do not; the printed plan marks those that do.
  bool has_bits_by_threads = false;
  std::function<KernelFunction()> instantiate;
  // If set: a form of the kernel that hands its only output (float32, plain layout) to KernelArguments::parts
  // while it lies in the cache, instead of writing it. The compiler uses it for gradients that nothing else
  // reads, if the caller takes parts. Its bits must not depend on the team.
  std::function<KernelFunction()> instantiate_in_parts;
  std::string implementation_in_parts;
};

// A kernel without state that reads and writes plain layouts: what most ops, and users' own ops, need.
Kernel plain_kernel(const Node& node, KernelFunction run, std::string implementation = "loop");

// Makes the kernel that converts a value of `type` between two layouts that are not equal (ops/ provides it;
// the compiler inserts it). Asserts if there is no such conversion.
using LayoutConverter =
    std::function<Kernel(const TensorType& type, const Layout& from, const Layout& to, const Team& team)>;

// An output that is the input's memory under another shape (reshape, stop_gradient). Needs the plain layout.
Kernel alias_kernel(const Node& node, int input = 0);

}  // namespace mox
