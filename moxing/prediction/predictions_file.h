// Predictions in a file: a row for each sample, in the order of the data.
//
//   .csv    a header line; the columns "sample", "file" (if the samples have names), then a column for each
//           value: "NAME", or "NAME/0", "NAME/1", ... where a sample has several (in row-major order)
//   .jsonl  an object a line: {"sample": 0, "file": "a.jpg", "NAME": 0.25, "OTHER": [[1, 2], [3, 4]]}
//   .npz    arrays for NumPy: "sample" int64, "file" text, and each value with the samples as first axis; all
//           is held in memory until it is written, and may have 4 GiB
//
// A name that is no UTF-8 is in .csv as it is; the others show its bytes as \xe9, with a warning.
// Numbers are written in the shortest form that reads back as the same float32. NaN and infinities are nan,
// inf and -inf in .csv and null in .jsonl, which has no others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "moxing/prediction/output_batch.h"

namespace mox {

class PredictionsFile {
 public:
  virtual ~PredictionsFile() = default;

  // By the ending of `path`. What is written goes to another file beside it until finish(). Throws
  // InvalidArgument for another ending, for a place where no file can be made or a directory is, and for
  // metrics.jsonl, which in the directory of a run holds what it has measured.
  static std::unique_ptr<PredictionsFile> open(const std::string& path);

  // Throws InvalidArgument for a batch with other values than the first, IoError.
  virtual void add(const OutputBatch& batch) = 0;

  // Gives the file its name, when all of it is on the disk. Without it nothing is left.
  virtual void finish() = 0;

  int64_t rows() const { return rows_; }

 protected:
  int64_t rows_ = 0;
};

// Throws ConfigError if `predictions`, the path of the file that is to be written, names the file `input`: it
// would be replaced. `use` says in the message what the file is for.
void require_other_than_input(const std::string& predictions, const std::string& input,
                              const std::string& use = "that is predicted from");

}  // namespace mox
