// The tables of the built-in options, one file a subject, in the order in which they are documented. To add
// an option, add a row to the table of its subject and regenerate docs/configuration.md (./dev docs).
#pragma once

#include <vector>

#include "moxing/config/options.h"

namespace mox::internal {

std::vector<Option> options_of_files();
std::vector<Option> options_of_run();
std::vector<Option> options_of_data();
std::vector<Option> options_of_compute();
std::vector<Option> options_of_distribution();
std::vector<Option> options_of_optimizer();
std::vector<Option> options_of_checkpoints();
std::vector<Option> options_of_boost();
std::vector<Option> options_of_logging();
std::vector<Option> options_of_selection();
std::vector<Option> options_of_stores();

}  // namespace mox::internal
