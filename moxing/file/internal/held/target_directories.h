// The directories that a copy to a disk writes into. The one that the user has named may be a link. Those
// below it are reached from there, one after another, and are none, whatever somebody puts there meanwhile.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string_view>

#include "runtime/base/opened_file.h"

namespace mox::file::internal {

using TargetDirectory = std::shared_ptr<const HeldDirectory>;

// The directory "a/b" below `top`, "" for `top` itself. Throws IoError, which names the link, or the file,
// that stands in the way.
TargetDirectory directory_below(const TargetDirectory& top, std::string_view name);

// The same; what is missing of it is made, the last one with `permissions`, which the umask narrows.
TargetDirectory make_directory_below(const TargetDirectory& top, std::string_view name,
                                     mode_t permissions = 0777);

}  // namespace mox::file::internal
