// Directories that hold copies of what lies in a store: whoever else may write to one could put a link into a
// place's stead, and have files elsewhere written, and others removed.
#pragma once

#include <string>

namespace mox::file::internal {

// Makes the directory if there is none, which others may read as the umask says. Afterwards it is a directory
// of this user's that nobody else may write to; one of this user's that others might write to is made so.
// Throws UnusablePlace for a link, for what is no directory, and for another user's.
void make_own_directory(const std::string& path);

// Makes the directory that the user has named if there is none. Others may not rename or replace what is made
// in it: throws UnusablePlace if they may, saying how to go on. It may be a link.
void make_safe_directory(const std::string& path);

}  // namespace mox::file::internal
