// What a kernel may count on, by the name of the property: the one place where a set of instructions is taken
// apart. A new set is a row here; kernels ask for what they need.
#pragma once

#include "ops/processor/instruction_set.h"

namespace mox {

struct Processor {
  int lanes;               // numbers of float32 in a vector register
  bool bfloat16_vectors;   // oneDNN computes with bfloat16 numbers, be it by conversions
  bool bfloat16_products;  // sums of products of pairs of bfloat16 numbers are one instruction
  bool tiles;              // products of whole tiles of bfloat16 numbers, at several times that rate

  bool operator==(const Processor&) const = default;
};

Processor processor_of(InstructionSet set);

// By instruction_set(), which this fixes. Any thread.
const Processor& processor();

// By available_instruction_set(); fixes nothing: for what gives the same bits with any set. Any thread.
const Processor& available_processor();

}  // namespace mox
