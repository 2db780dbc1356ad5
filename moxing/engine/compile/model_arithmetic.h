// How a run's models compute.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ops/fusion/default_rules.h"
#include "ops/processor/instruction_set.h"
#include "runtime/comm/communicator.h"

namespace mox::internal {

struct Arithmetic {
  RuleOptions rules;
  // Whether a plan of small instructions is computed by one thread of the team, so that nothing waits; a rule
  // of the plan alone (see team_for in compiled_model.cc), so that a program has the same bits each time.
  bool team_follows_work = false;
  // Whether rules.direct_classes are found out before a training (convolution_trial.h). Where nothing is
  // trained there are none: answers do not depend on what was measured.
  bool measures_convolutions = false;
};

// What of the options decides how plans compute, in the options' words.
struct ArithmeticOptions {
  std::string precision = "fp32";
  std::string conv_algorithm = "auto";
  double conv_error = kStatedConvolutionError;
  std::string recompute = "none";  // of a backward pass
};

// The one place where these words get their meaning, for whoever compiles a model: a run, a Predictor. Throws
// InvalidArgument, which begins with `who`, for what the options do not take.
Arithmetic arithmetic_of(const ArithmeticOptions& options, std::string_view who);

// "precision bf16, conv_algorithm auto": what decides the last bits, in the words of the options, and which
// classes of convolutions were measured to be faster directly.
std::string description_of(const Arithmetic& arithmetic);

// `precision` if instruction_set() has it. Logs a warning where it costs more than float32, and where float32
// must stand in for it.
Precision supported_precision(Precision precision);

// What a checkpoint says of how it was computed, as far as it is known.
struct KeptArithmetic {
  std::string path;
  std::optional<InstructionSet> instruction_set;
  std::string arithmetic;  // description_of it; "": not known
};

// Makes all ranks of a job compute alike: they take the instructions that rank 0 chooses (see
// choose_instruction_set), and what these have for the precision asked for. Rank 0 logs what cannot be kept
// equal. All ranks call it together, before anything is compiled: a rank that has compiled with other
// instructions than rank 0's is refused, as require_agreement does (runtime/job/agreement.h).
// `training_threads`: with which a training will compute, and convolutions are measured where that is asked
// for (convolution_trial.h); 0: nothing is trained.
Arithmetic settle_arithmetic(Communicator& ranks, const Arithmetic& wanted, const KeptArithmetic& kept,
                             bool allow_inexact, int training_threads = 0);

}  // namespace mox::internal
