// Small checkpoints and directories for the tests of saving and loading.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "moxing/checkpoint/checkpoint.h"
#include "tests/support/kept_files.h"

namespace mox {

// A directory name that does not exist yet, of this test's process alone; removed when the process ends.
inline std::string fresh_directory(const std::string& name) {
  struct Used {
    std::vector<std::filesystem::path> paths;
    ~Used() {
      if (keeps_test_files()) return;
      std::error_code ignored;
      for (const auto& path : paths) std::filesystem::remove_all(path, ignored);
    }
  };
  static Used used;
  used.paths.push_back(std::filesystem::temp_directory_path() /
                       ("moxing_" + std::to_string(::getpid()) + "_" + name));
  std::filesystem::remove_all(used.paths.back());
  return used.paths.back().string();
}

// Values that depend on `value`, so that a mixture of two checkpoints shows.
inline Checkpoint sample_checkpoint(int64_t step, float value, int64_t elements = 3) {
  const auto filled = [&](float x) {
    Array array(DType::kFloat32, {elements});
    for (float& element : array.values<float>()) element = x;
    return array;
  };
  return {.global_step = step,
          .variables = {{"layer/weights", filled(value)}, {"layer/bias", Array::scalar(value)}},
          .optimizer_slots = {{"layer/weights/momentum", filled(-value)}},
          .state = {{"value", std::to_string(static_cast<int64_t>(value))}, {"seed", "7"}}};
}

// Whether every part of the checkpoint comes from sample_checkpoint(step, value).
inline bool is_sample(const Checkpoint& checkpoint, int64_t step, float value) {
  if (checkpoint.global_step != step || checkpoint.variables.size() != 2 ||
      checkpoint.optimizer_slots.size() != 1)
    return false;
  for (float x : checkpoint.variables[1].value.values<float>())
    if (x != value) return false;
  for (float x : checkpoint.optimizer_slots[0].value.values<float>())
    if (x != -value) return false;
  return checkpoint.variables[0].value.item() == value &&
         checkpoint.state.at("value") == std::to_string(static_cast<int64_t>(value));
}

// But for the lock of those who save there, which stays.
inline std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().filename() != ".save-lock") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace mox
