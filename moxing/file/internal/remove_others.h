// The second half of a synchronisation: what the source does not have goes.
#pragma once

#include <cstdint>
#include <stop_token>

#include "moxing/file/internal/url.h"

namespace mox::file::internal {

// Removes from below the directory `target` what the directory `source` does not have, and says how many
// files that were. A file and a directory of the same name are two things. Of a link that `source` does not
// have the link goes, and nothing that it leads to. What comes meanwhile stays; IoError names the local
// directories that it keeps.
int64_t remove_others(const Url& source, const Url& target, const std::stop_token& stop);

}  // namespace mox::file::internal
