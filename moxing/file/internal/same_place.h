// Whether two names mean the same file, or one of them lies in the other.
#pragma once

#include "moxing/file/internal/url.h"

namespace mox::file::internal {

// The same object, whatever the scheme; or the same local file, by another path, a link or a second name.
bool is_same_file(const Url& a, const Url& b);

// Whether `inner` is `outer`, or would lie below it as a directory.
bool lies_in(const Url& inner, const Url& outer);

}  // namespace mox::file::internal
