// Names of files on this machine, told from those of objects in a store, and places that files cannot have.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/base/error.h"

namespace mox {

// A directory or a file to be written that cannot be made, and could not another time: something on its way
// is a file, is not there, or may not be written. Unlike a full disk, it ends a run with status 2: what
// starts failed runs anew (--max-restarts) does not repeat it.
class UnusablePlace : public IoError {
 public:
  using IoError::IoError;
};

// Throws an error with another text, of the kind of `error`.
[[noreturn]] void throw_alike(const IoError& error, const std::string& text);

// Whether the system's error (errno) is of that kind.
bool is_unusable_place(int error);

// Throws InvalidArgument for a name that begins as a URL does (s3://bucket/key, file:///path). Whatever
// opens, makes or looks for a local file calls it: such a name would lead to a file of another place, to
// none, or to a new directory of the name "s3:".
void require_local_name(const std::filesystem::path& path);

}  // namespace mox
