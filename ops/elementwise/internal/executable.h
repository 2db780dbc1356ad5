// A program ready to run: its operands' places, its registers, its cut into blocks. Immutable while it runs.
#pragma once

#include <memory>
#include <vector>

#include "ops/elementwise/internal/access.h"
#include "ops/elementwise/internal/program.h"
#include "runtime/graph/kernel.h"

namespace mox::elementwise {

struct Executable {
  Program program;
  DType register_dtype = DType::kFloat32;  // float32, int32 or int64
  DType output_dtype = DType::kFloat32;
  int64_t elements = 0;  // of the output, padding included
  std::vector<Access> accesses;
  std::vector<DType> input_dtypes;

  // Set by prepare.
  int64_t block = 0;             // elements; a multiple of kLane
  int64_t slices = 1;            // pieces of the work, each with its own registers
  int registers = 0;             // of one slice
  std::vector<int> register_of;  // of each value
  size_t scratch_bytes() const;
};

// Chooses the block and the registers.
void prepare(Executable* executable, const Team& team);

// What runs it every step.
KernelFunction make_kernel_function(std::shared_ptr<const Executable> executable);

}  // namespace mox::elementwise
