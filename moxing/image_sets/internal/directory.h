// Listing directories of images.
#pragma once

#include <string>
#include <vector>

namespace mox::data::internal {

struct Listing {
  std::vector<std::string> directories, images, others;  // names, sorted; hidden ones are left out
  std::vector<std::string> image_etags;                  // of `images`, in a store; else empty
};

// Of a directory of this machine or of a store. Throws NotFound or IoError.
Listing list_directory(const std::string& path);

// Where a directory of this machine is, all links followed. Throws as list_directory.
std::string real_directory(const std::string& path);

// The path of a name in a directory.
std::string inside(const std::string& directory, const std::string& name);

// "a, b, c and 4 more"
std::string some_of(const std::vector<std::string>& names);

}  // namespace mox::data::internal
