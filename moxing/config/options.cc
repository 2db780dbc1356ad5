#include "moxing/config/options.h"

#include "moxing/config/internal/option_tables.h"

namespace mox {
namespace {

std::vector<Option> declare() {
  std::vector<Option> all;
  for (auto* const table :
       {internal::options_of_files, internal::options_of_run, internal::options_of_data,
        internal::options_of_compute, internal::options_of_distribution, internal::options_of_optimizer,
        internal::options_of_checkpoints, internal::options_of_selection, internal::options_of_boost,
        internal::options_of_logging, internal::options_of_stores}) {
    for (Option& option : table()) all.push_back(std::move(option));
  }
  return all;
}

}  // namespace

const std::vector<Option>& built_in_options() {
  static const std::vector<Option> options = declare();
  return options;
}

}  // namespace mox
