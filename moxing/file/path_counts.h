// How many paths a listing that follows links has found to each directory. Links among directories can make
// of a handful of them more paths than can be listed: two links to the next one in each of thirty
// make a billion.
#pragma once

#include <map>
#include <string>

namespace mox::file {

// With more to one directory, a listing is refused.
inline constexpr int kMostPathsToADirectory = 1000;

class PathCounts {
 public:
  // `directory`: another text for another directory, whatever leads there. Throws IoError, naming `path`, for
  // one more path to it than may be.
  void add(const std::string& directory, const std::string& path);

 private:
  std::map<std::string, int> counts_;
};

}  // namespace mox::file
