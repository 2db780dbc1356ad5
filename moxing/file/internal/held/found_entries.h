// What lies in a directory of a disk.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "moxing/file/internal/descriptor.h"

namespace mox::file::internal {

struct Found {
  std::string name;
  struct stat status {};
  int failure = 0;  // why nothing is known of it
};

// A directory, opened to be listed, through links. Throws IoError.
Descriptor open_directory(const std::string& path);

// What is in a directory, sorted. What goes away meanwhile is left out. `follow`: a link counts as what it
// leads to. `path` is for messages. Throws IoError.
std::vector<Found> entries_of(Descriptor directory, const std::string& path, bool follow);

}  // namespace mox::file::internal
