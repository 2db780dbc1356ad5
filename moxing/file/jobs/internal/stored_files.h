// What this machine knows to be in the store of a run besides checkpoints (known_manifests.h): each file as
// it was here when it was last sent or fetched, and what the store called that content.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace mox::file::internal {

// Larger files are not read into memory.
inline constexpr int64_t kMostInMemory = 16 << 20;

// A file of this machine, as a look at its directory sees it.
struct Seen {
  int64_t length = 0;
  std::chrono::system_clock::time_point mtime{};
  bool operator==(const Seen&) const = default;
};

// Of a local path; as `file::stat` throws.
Seen seen_at(const std::string& path);

struct StoredFile {
  std::string etag;
  Seen here;
};
using StoredFiles = std::map<std::string, StoredFile>;

// In the file `.stored-files` of the run's place; empty where it is not there. What it does not tell, names
// with a line feed among it, counts as unknown.
StoredFiles read_stored_files(const std::string& place);
void write_stored_files(const std::string& place, const StoredFiles& files);

}  // namespace mox::file::internal
