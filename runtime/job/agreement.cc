#include "runtime/job/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "runtime/base/build_id.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/random.h"
#include "runtime/base/version.h"

namespace mox::internal {
namespace {

std::string text_of(const JobFacts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += name + '\t' + value + '\n';
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

JobFacts facts_of_build() {
  return {{"version of moxing", std::string(version())},
          {"compiler", __VERSION__},
          {"build of the program", program_build_id()},
          {"build of moxing", library_build_id()}};
}

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown";
}

void require_agreement(Communicator& communicator, const JobFacts& facts) {
  if (communicator.size() == 1) return;
  const std::string own = text_of(facts);
  const auto hashes = communicator.allgather_equal(fmt::format("{:016x}", stable_hash(own)));
  const auto other = std::ranges::find_if(hashes, [&](const std::string& hash) { return hash != hashes[0]; });
  if (other == hashes.end()) return;
  const int rank = other - hashes.begin();
  const auto first = lines_of(communicator.broadcast_text(own, 0)),
             second = lines_of(communicator.broadcast_text(own, rank));
  // Rank 0 speaks. The others wait for what never comes: its failure ends them.
  if (communicator.rank() != 0) communicator.barrier();
  const auto [left, right] = std::ranges::mismatch(first, second);
  const auto shown = [](auto it, const auto& lines) {
    if (it == lines.end()) return std::string("nothing");
    return fmt::format("'{}'", it->substr(it->find('\t') + 1));
  };
  const std::string& line = left != first.end() ? *left : *right;
  throw FailedPrecondition(
      fmt::format("rank 0 (host {}) and rank {} (host {}) do not run the same thing. The first difference is "
                  "in the {}: {} against {}. All ranks need the same program, options and data",
                  communicator.host(0), rank, communicator.host(rank), line.substr(0, line.find('\t')),
                  shown(left, first), shown(right, second)));
}

void mention_other_processors(Communicator& communicator, const std::string& own) {
  const auto models = communicator.allgather(own);
  for (int rank = 1; rank < communicator.size(); ++rank) {
    const std::string& model = models[rank];
    if (model == models[0] || communicator.rank() != 0) continue;
    log_warning(fmt::format(
        "rank {} (host {}) computes on '{}', rank 0 on '{}': the last bits of the result may depend on "
        "which rank computes what",
        rank, communicator.host(rank), model, models[0]));
    return;
  }
}

void mention_processor_of(const std::string& path, const std::string& before, const std::string& now) {
  // Checkpoints of before have the processor alone, not the library.
  if (before.empty() || before == now || now.starts_with(before + ", ")) return;
  log_warning(fmt::format(
      "'{}' was computed on '{}' and is continued on '{}': the result is as good, but its last bits may not "
      "be those of an uninterrupted run",
      path, before, now));
}

}  // namespace mox::internal
