// metrics.jsonl: a line of JSON for every logged step and evaluation of a run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/opened_file.h"

namespace mox::internal {

class MetricsLog {
 public:
  // The file is kept below `most_bytes` or so (lines_that_stay): what is old has few lines and what is new
  // has all; of evaluations and predictions, too, where nearly all of it is theirs.
  explicit MetricsLog(uint64_t most_bytes = uint64_t{64} << 20) : most_bytes_(most_bytes) {}

  // A run that goes on from `step` writes the steps after it again: theirs are cut off, and what is no whole
  // line (a crash, a full disk) with them. Reads the end of the file alone, as far back as a line of a step
  // that stays. Throws IoError.
  void open(const std::string& path, int64_t step);
  void close() { file_ = FileDescriptor(); }
  bool is_open() const { return file_.get() >= 0; }
  const std::string& path() const { return path_; }
  // The step of the evaluation that stands last in what `open` has read; -1: none.
  int64_t evaluated_step() const { return evaluated_step_; }

  void write(const nlohmann::ordered_json& line);  // throws IoError

 private:
  void cut_after(int64_t step);
  void thin();

  uint64_t most_bytes_;
  std::string path_;
  FileDescriptor file_;
  uint64_t bytes_ = 0;
  int64_t evaluated_step_ = -1;
};

}  // namespace mox::internal
