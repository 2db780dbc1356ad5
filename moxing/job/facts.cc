#include "moxing/job/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "moxing/config/options.h"
#include "ops/processor/compute_library.h"
#include "runtime/data/content_sample.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

// Where things are, and how fast they come, may differ from machine to machine.
constexpr std::array
    kLocalOptions = {"config",           "data_url",  "train_url",        "log_dir",
                     "checkpoint_path",  "threads",   "data_threads",     "data_memory_mb",
                     "prefetch_batches", "log_level", "  local_directory"};  // that one is of the section
                                                                             // file

}  // namespace

JobFacts facts_of_compute_library() {
  return {{"library that computes", compute_library()},
          {"build of the library that computes", compute_library_build_id()}};
}

JobFacts facts_of_configuration() {
  JobFacts facts;
  std::istringstream lines(effective_configuration());
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find("  # "));  // where the value comes from
    line.erase(line.find_last_not_of(' ') + 1);
    if (const size_t text = line.find_first_not_of(' '); text == line.npos || line[text] == '#') continue;
    const std::string key = line.substr(0, line.find(':'));
    if (std::ranges::find(kLocalOptions, key) == kLocalOptions.end())
      facts.emplace_back("configuration", line);
  }
  return facts;
}

JobFacts facts_of_data(const Dataset& batches) {
  JobFacts facts = {{"data", fmt::format("{} with {} elements", batches.describe(), batches.cardinality())}};
  if (job().size() > 1)
    for (const std::string& line : content_sample(batches)) facts.emplace_back("data", line);
  return facts;
}

std::string computed_by() { return fmt::format("{}, {}", processor_model(), compute_library()); }

}  // namespace mox::internal
