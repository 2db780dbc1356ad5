// What an evaluation or a prediction has found, kept beside the checkpoint that was measured.
#pragma once

#include <string>

#include "moxing/engine/session/internal/evaluation_state.h"
#include "moxing/model/mode_keys.h"

namespace mox::internal {

struct PassResults {
  ModeKeys mode = ModeKeys::EVAL;
  std::string checkpoint;              // its path
  std::string stored_checkpoint = {};  // its URL, if that path is of a copy
  int64_t global_step = 0;
  int64_t samples = 0;
  double seconds = 0;
  Evaluation evaluation = {};    // in EVAL
  std::string predictions = {};  // in PREDICT: the path of the file, if one was written
};

// The text of results.json whose text was `before` ("" for none), with the entry of `results.mode` replaced.
// Entries of others stay. What is no JSON object counts for nothing. Throws DataError, naming `path`, for
// what would take far more memory than `before`.
std::string results_with(const std::string& before, const std::string& path, const PassResults& results);

// In the directory of the checkpoint: results.json, an object with an entry for each mode, of which that of
// `results.mode` is replaced; and a line in metrics.jsonl. The same in the directory of the store that it was
// copied from. Where such a directory cannot be written a warning says so: what was found has been printed.
// Of the ranks of a job rank 0 calls it.
void keep_results(const PassResults& results);

}  // namespace mox::internal
