// The vector instructions that kernels are made of: they decide how sums are cut, and so the last
// bits of a result.
//
// oneDNN's kernels and our own use the same set. It belongs to the process: limit_instruction_set, the first
// call of instruction_set and the first kernel that is compiled fix it, whichever comes first.
#pragma once

#include <optional>
#include <string_view>

namespace mox {

// Each has the instructions of all before it.
enum class InstructionSet {
  kAvx2,            // with FMA: what every processor has that runs this library
  kAvx512,          // AVX-512 F, BW, VL and DQ
  kAvx512BFloat16,  // VNNI and BF16: products of bfloat16 numbers
  kAmx,             // products of tiles of bfloat16 numbers
};

// "avx2", "avx512", "avx512_bf16", "amx".
std::string_view to_string(InstructionSet set);
// The set of that name, if there is one.
std::optional<InstructionSet> instruction_set_from_string(std::string_view name);

// The largest set that this process could use: what the processor has, within oneDNN's environment variable
// ONEDNN_MAX_CPU_ISA (or DNNL_MAX_CPU_ISA) where that is set. Fixes nothing. Any thread.
InstructionSet available_instruction_set();

// Lets kernels use no more than `set`, and fixes what they use. Comes too late, and changes nothing, where
// the set of the process was fixed before: so returns whether instruction_set() is within `set`. Any thread.
bool limit_instruction_set(InstructionSet set);

// What kernels use. Any thread.
InstructionSet instruction_set();

}  // namespace mox
