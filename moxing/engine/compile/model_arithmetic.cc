#include "moxing/engine/compile/model_arithmetic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "moxing/engine/compile/convolution_trial.h"
#include "moxing/engine/compile/internal/instruction_choice.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/job/agreement.h"

namespace mox::internal {
namespace {

std::vector<RankInstructions> instructions_of_ranks(Communicator& ranks) {
  std::vector<RankInstructions> result;
  for (const std::string& name : ranks.allgather(to_string(available_instruction_set()))) {
    const int rank = result.size();
    const auto set = instruction_set_from_string(name);
    if (!set)
      throw FailedPrecondition(
          fmt::format("rank {} (host {}) has instructions that this program does not know ('{}'): all ranks "
                      "need the same program",
                      rank, ranks.host(rank), name));
    result.push_back({ranks.host(rank), *set});
  }
  return result;
}

// Rank 0's process may have compiled something before; then the others follow it.
void settle_instruction_set(Communicator& ranks, const KeptArithmetic& kept, bool allow_inexact) {
  const InstructionChoice choice =
      choose_instruction_set(instructions_of_ranks(ranks), kept.instruction_set, kept.path, allow_inexact);
  if (ranks.rank() == 0) {
    for (const std::string& remark : choice.remarks) log_warning(remark);
    if (!limit_instruction_set(choice.set))
      log_warning(
          fmt::format("this process has compiled with {} instructions before, and goes on with them; "
                      "{} were to be used",
                      to_string(instruction_set()), to_string(choice.set)));
  }
  const auto chosen = ranks.broadcast_text(ranks.rank() == 0 ? to_string(instruction_set()) : "");
  limit_instruction_set(instruction_set_from_string(chosen).value_or(choice.set));
  require_agreement(ranks, {{"instructions in use", std::string(to_string(instruction_set()))}});
}

void require_word(std::string_view who, std::string_view option, const std::string& word,
                  std::initializer_list<std::string_view> words) {
  if (std::ranges::find(words, word) == words.end())
    throw InvalidArgument(fmt::format("{}: {} is {}, got '{}'", who, option, fmt::join(words, " or "), word));
}

std::string_view conv_algorithm_of(const Arithmetic& arithmetic) {
  if (arithmetic.rules.direct_convolutions) return "direct";
  return arithmetic.measures_convolutions ? "measured" : "auto";
}

}  // namespace

Arithmetic arithmetic_of(const ArithmeticOptions& options, std::string_view who) {
  require_word(who, "precision", options.precision, {"fp32", "bf16"});
  require_word(who, "conv_algorithm", options.conv_algorithm, {"auto", "direct", "measured"});
  if (!(options.conv_error >= 0 && options.conv_error <= kStatedConvolutionError))
    throw InvalidArgument(fmt::format("{}: conv_error is a number from 0 to {}, got {}", who,
                                      kStatedConvolutionError, options.conv_error));
  return {.rules = {.precision = options.precision == "bf16" ? Precision::kBFloat16 : Precision::kFloat32,
                    .recomputed = recomputed_normalisations(options.recompute),
                    .direct_convolutions = options.conv_algorithm == "direct",
                    .convolution_error = options.conv_error},
          .measures_convolutions = options.conv_algorithm == "measured"};
}

std::string description_of(const Arithmetic& arithmetic) {
  const RuleOptions& rules = arithmetic.rules;
  // What older checkpoints do not say is said only where it is not as it was then.
  return fmt::format(
      "precision {}, conv_algorithm {}{}{}", rules.precision == Precision::kBFloat16 ? "bf16" : "fp32",
      conv_algorithm_of(arithmetic),
      arithmetic.measures_convolutions ? fmt::format(" [{}]", to_string(rules.direct_classes)) : "",
      rules.convolution_error < kStatedConvolutionError
          ? fmt::format(", conv_error {}", rules.convolution_error)
          : "");
}

Arithmetic settle_arithmetic(Communicator& ranks, const Arithmetic& wanted, const KeptArithmetic& kept,
                             bool allow_inexact, int training_threads) {
  settle_instruction_set(ranks, kept, allow_inexact);
  Arithmetic result = wanted;
  result.rules.precision = supported_precision(wanted.rules.precision);
  if (result.measures_convolutions && training_threads > 0)
    result.rules.direct_classes =
        settled_direct_classes(ranks, result.rules.precision, kept.arithmetic, training_threads);
  const std::string description = description_of(result);
  if (ranks.rank() == 0 && !kept.arithmetic.empty() && kept.arithmetic != description)
    log_warning(
        fmt::format("'{}' was computed with {} and is continued with {}: it is not what an uninterrupted "
                    "run would compute",
                    kept.path, kept.arithmetic, description));
  return result;
}

Precision supported_precision(Precision precision) {
  if (precision == Precision::kFloat32) return precision;
  switch (bfloat16_support()) {
    case BFloat16Support::kNative:
      break;
    case BFloat16Support::kEmulated:
      log_warning(
          "bfloat16 is asked for (by precision, or a scope's force_dtype), but the instructions in use have "
          "no products of bfloat16 numbers (AVX512_BF16): products are computed through conversions to "
          "float32, and a step takes about four times as long as with precision fp32; it saves memory alone");
      break;
    case BFloat16Support::kNone:
      log_warning(
          "bfloat16 is asked for (by precision, or a scope's force_dtype), but the instructions in use can "
          "compute nothing in bfloat16 (they have no AVX-512): float32 stands in for it, with the time of a "
          "step, the memory and the digits of precision fp32, so precision bf16 gains nothing here");
      return Precision::kFloat32;
  }
  return Precision::kBFloat16;
}

}  // namespace mox::internal
