// The formats of prediction files.
#pragma once

#include <memory>
#include <string>

#include "moxing/prediction/predictions_file.h"

namespace mox::internal {

std::unique_ptr<PredictionsFile> open_csv(const std::string& path);
std::unique_ptr<PredictionsFile> open_json_lines(const std::string& path);
std::unique_ptr<PredictionsFile> open_npz(const std::string& path);

// Throws InvalidArgument unless `batch` has the values of `first`, with rows of the same types, and names of
// its own for each.
void require_like_first(const OutputBatch& batch, const OutputBatch& first);

}  // namespace mox::internal
