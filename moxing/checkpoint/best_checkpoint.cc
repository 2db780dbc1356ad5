#include "moxing/checkpoint/best_checkpoint.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "moxing/checkpoint/internal/checkpoint_directory.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox {
namespace {

constexpr const char* kBestKey = "best";
constexpr size_t kMostTimesOfMark = 12;  // what its values are taken to need; there are four

}  // namespace

std::string best_directory(const std::string& log_dir) { return log_dir + "/best"; }

std::string to_json(const BestMark& mark) {
  return nlohmann::json({{"metric", mark.metric},
                         {"larger_is_better", mark.larger_is_better},
                         {"value", mark.value},
                         {"restore", mark.restore}})
      .dump();
}

std::optional<BestMark> best_mark_of(const Checkpoint& checkpoint, const std::string& path) {
  const auto entry = checkpoint.state.find(kBestKey);
  if (entry == checkpoint.state.end()) return std::nullopt;
  try {
    const auto json = parse_json(entry->second, path, kMostTimesOfMark);
    return BestMark{.metric = json.at("metric").get<std::string>(),
                    .larger_is_better = json.at("larger_is_better").get<bool>(),
                    .value = json.at("value").get<double>(),
                    .restore = json.at("restore").get<bool>()};
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("'{}' holds a best state that no run has written: {}", path, error.what()));
  }
}

Checkpoint load_trained(const std::string& path, std::string* directory) {
  if (!is_there_as_directory(path)) return load_checkpoint(path, directory);  // throws, and says why
  std::string found;
  if (auto best = load_latest_checkpoint(best_directory(path), &found)) {
    const std::optional<BestMark> mark = best_mark_of(*best, found);
    if (mark && mark->restore) {
      log_info(fmt::format("'{}' is the best state of '{}': {} {:g} at global step {}", found, path,
                           mark->metric, mark->value, best->global_step));
      if (directory) *directory = found;
      return *std::move(best);
    }
  }
  return load_checkpoint(path, directory);
}

void delete_checkpoints_but(const std::string& directory, int64_t step) {
  const HeldDirectory held(directory);
  try {
    const internal::DirectoryLock lock(held);
    for (const CheckpointEntry& entry : list_checkpoints(held.path()))
      if (entry.step != step) internal::delete_checkpoint(held.path(), entry.step);
  } catch (const IoError& error) {
    held.throw_named(error);
  }
}

}  // namespace mox
