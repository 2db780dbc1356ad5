// Checkpoints of object stores, for commands that read files.
#pragma once

#include <string>

namespace mox::cli {

// A checkpoint, or a log_dir, of which the latest complete checkpoint is taken: copied to this machine if it
// lies in an object store (moxing/file/jobs/local_places.h). A local path as it is.
std::string checkpoint_here(const std::string& url);

// A log_dir with all of its complete checkpoints, or a checkpoint.
std::string checkpoints_here(const std::string& url);

}  // namespace mox::cli
