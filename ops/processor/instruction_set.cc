#include "ops/processor/instruction_set.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <dnnl.hpp>
#include <string>
#include <utility>

namespace mox {
namespace {

constexpr std::array<std::string_view, 4> kInstructionSetNames = {"avx2", "avx512", "avx512_bf16", "amx"};

bool has_amx() {
  constexpr unsigned kBFloat16 = 1U << 22, kTile = 1U << 24, kInt8 = 1U << 25;
  constexpr unsigned kAll = kBFloat16 | kTile | kInt8;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAll) == kAll;
}

InstructionSet set_of_processor() {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
    return InstructionSet::kAvx2;
  if (!__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("avx512bf16"))
    return InstructionSet::kAvx512;
  return has_amx() ? InstructionSet::kAmx : InstructionSet::kAvx512BFloat16;
}

// What oneDNN makes of its environment variable; of a value that it does not know, nothing.
InstructionSet set_of_environment() {
  constexpr InstructionSet kNoLimit = InstructionSet::kAmx;
  constexpr std::pair<std::string_view, InstructionSet> kValues[] = {
    {"SSE41", InstructionSet::kAvx2},
    {"AVX", InstructionSet::kAvx2},
    {"AVX2", InstructionSet::kAvx2},
    {"AVX2_VNNI", InstructionSet::kAvx2},
#if DNNL_VERSION_MAJOR >= 3
    {"AVX2_VNNI_2", InstructionSet::kAvx2},
    {"AVX512_CORE_FP16", InstructionSet::kAvx512BFloat16},
    {"AVX10_1_512", InstructionSet::kAvx512BFloat16},
#else
    {"AVX512_MIC", InstructionSet::kAvx2},
    {"AVX512_MIC_4OPS", InstructionSet::kAvx2},
#endif
    {"AVX512_CORE", InstructionSet::kAvx512},
    {"AVX512_CORE_VNNI", InstructionSet::kAvx512},
    {"AVX512_CORE_BF16", InstructionSet::kAvx512BFloat16},
  };
  for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* text = std::getenv(variable);
    if (!text || *text == '\0') continue;
    std::string value = text;
    for (char& letter : value) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    for (const auto& [name, set] : kValues)
      if (value == name) return set;
    return kNoLimit;
  }
  return kNoLimit;
}

dnnl::cpu_isa isa_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx2:
      return dnnl::cpu_isa::avx2;
    case InstructionSet::kAvx512:
      return dnnl::cpu_isa::avx512_core;
    case InstructionSet::kAvx512BFloat16:
      return dnnl::cpu_isa::avx512_core_bf16;
    case InstructionSet::kAmx:
      break;
  }
  return dnnl::cpu_isa::avx512_core_amx;
}

// Asking oneDNN fixes its set. Its sets are bits, of which a set has those of all that it includes.
InstructionSet set_of_onednn() {
  const auto bits = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  for (const InstructionSet set :
       {InstructionSet::kAmx, InstructionSet::kAvx512BFloat16, InstructionSet::kAvx512}) {
    const auto wanted = static_cast<unsigned>(isa_of(set));
    if ((bits & wanted) == wanted) return set;
  }
  return InstructionSet::kAvx2;
}

}  // namespace

std::string_view to_string(InstructionSet set) { return kInstructionSetNames[static_cast<size_t>(set)]; }

std::optional<InstructionSet> instruction_set_from_string(std::string_view name) {
  const auto found = std::find(kInstructionSetNames.begin(), kInstructionSetNames.end(), name);
  if (found == kInstructionSetNames.end()) return std::nullopt;
  return static_cast<InstructionSet>(found - kInstructionSetNames.begin());
}

InstructionSet available_instruction_set() { return std::min(set_of_processor(), set_of_environment()); }

bool limit_instruction_set(InstructionSet set) {
  // A limit that says nothing new would still take the place of the environment variable's, which may be a
  // finer one.
  if (set < available_instruction_set()) dnnl::set_max_cpu_isa(isa_of(set));
  return instruction_set() <= set;
}

InstructionSet instruction_set() {
  static const InstructionSet fixed = set_of_onednn();
  return fixed;
}

}  // namespace mox
