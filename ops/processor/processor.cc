#include "ops/processor/processor.h"

namespace mox {

Processor processor_of(InstructionSet set) {
  const bool is_wide = set >= InstructionSet::kAvx512;
  return {.lanes = is_wide ? 16 : 8,
          .bfloat16_vectors = is_wide,
          .bfloat16_products = set >= InstructionSet::kAvx512BFloat16,
          .tiles = set >= InstructionSet::kAmx};
}

const Processor& processor() {
  static const Processor fixed = processor_of(instruction_set());
  return fixed;
}

const Processor& available_processor() {
  static const Processor available = processor_of(available_instruction_set());
  return available;
}

}  // namespace mox
