// Whether data that a model is evaluated on are those that it is trained on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"

namespace mox {

// Samples that both data sets have.
struct SharedContent {
  size_t same = 0, looked_at = 0;
  std::string name, trained_name;  // of the first sample of each; "" if it has none
};

// Of samples, not of batches. Looks at what content_sample looks at, and finds data that are the same in
// number, order and contents, whatever they are called, and samples of the same name (the last two parts of a
// path) and content, however many others there are. Nothing if fewer than half of the samples are the same,
// for data of several sources or of generators, and where they are parts of their source (take, skip, split),
// which may be others.
std::optional<SharedContent> shared_content(const Dataset& training, const Dataset& evaluation);

// The same where of the training the lines of content_sample are known.
std::optional<SharedContent> shared_content(const std::vector<std::string>& training,
                                            const Dataset& evaluation);

// The lines of content_sample in a cursor of a pipeline; none in one of before, or in what is no cursor.
std::vector<std::string> contents_of_cursor(const std::string& cursor);

}  // namespace mox
