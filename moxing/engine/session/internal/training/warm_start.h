// What the variables of a model have got from a checkpoint.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "moxing/checkpoint/name_patterns.h"
#include "moxing/engine/compile/compiled_model.h"
#include "moxing/engine/session/starting_point.h"
#include "moxing/model/training_facts.h"
#include "moxing/model/variable_store.h"

namespace mox::internal {

// The names of the variables declared in `store` whose values are those of the checkpoint; sorted.
std::vector<std::string> restored_variables(const StartingPoint& start, const VariableStore& store);

// Call it once the model's variables are declared in `store`, on all ranks. Throws ConfigError, naming both,
// if a run starts from the variables of a checkpoint and the model has none of them. Where it has a part of
// them, or of those of the run that it continues, one line of the log says how many; with `log_dir` (rank
// 0's; empty: none) all names are written to its file restored_variables.txt. Throws IoError if it cannot be.
void report_restored(const StartingPoint& start, const VariableStore& store, bool says,
                     const std::string& log_dir);

// One line about the option `freeze`: how many of the graph's trainable variables are not trained. Throws
// InvalidArgument for a pattern that none of the graph's variables matches.
void report_frozen(const NamePatterns& freeze, const Graph& graph, bool says);

// A warning about trainable variables that the run leaves as they are and that are not among `restored`
// (restored_variables): what they hold is what initializers gave them.
void warn_of_frozen_initial_values(const CompiledModel& model, const TrainingFacts& training,
                                   std::span<const std::string> restored);

}  // namespace mox::internal
