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

void require_agreement(Communicator& ranks, const JobFacts& facts) {
  if (ranks.size() == 1) return;
  const std::string own = text_of(facts);
  const auto hashes = ranks.allgather_equal(fmt::format("{:016x}", stable_hash(own)));
  const auto other = std::ranges::find_if(hashes, [&](const std::string& hash) { return hash != hashes[0]; });
  if (other == hashes.end()) return;
  const int rank = other - hashes.begin();
  const auto first = lines_of(ranks.broadcast_text(own, 0)),
             second = lines_of(ranks.broadcast_text(own, rank));
  // Rank 0 speaks. The others wait for what never comes: its failure ends them.
  if (ranks.rank() != 0) ranks.barrier();
  const auto [left, right] = std::ranges::mismatch(first, second);
  const auto shown = [](auto it, const auto& lines) {
    if (it == lines.end()) return std::string("nothing");
    return fmt::format("'{}'", it->substr(it->find('\t') + 1));
  };
  const std::string& line = left != first.end() ? *left : *right;
  throw FailedPrecondition(
      fmt::format("rank 0 (host {}) and rank {} (host {}) do not run the same thing. The first difference is "
                  "in the {}: {} against {}. All ranks need the same program, options and data",
                  ranks.host(0), rank, ranks.host(rank), line.substr(0, line.find('\t')), shown(left, first),
                  shown(right, second)));
}

void mention_other_processors(Communicator& ranks, const std::string& own) {
  const auto models = ranks.allgather(own);
  for (int rank = 1; rank < ranks.size(); ++rank) {
    const std::string& model = models[rank];
    if (model == models[0] || ranks.rank() != 0) continue;
    log_warning(fmt::format(
        "rank {} (host {}) computes on '{}', rank 0 on '{}': the last bits of the result may depend on "
        "which rank computes what",
        rank, ranks.host(rank), model, models[0]));
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
