// What this machine knows to be in the store of a run besides checkpoints (known_manifests.h): each file as
// it was here when it was last sent or fetched, and what the store called that content.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "moxing/file/file.h"

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

// Whether the file at `path` has all of the content that the store has at `url`, and may go on behind it, as
// a log does to which more was written. False for what is too large to be compared.
bool begins_with_stored(const std::string& url, const Stat& there, const std::string& path);

struct StoredFile {
  std::string etag;
  Seen here;
};
using StoredFiles = std::map<std::string, StoredFile>;

// A line "ETAG LENGTH MTIME NAME" for each file. What it does not tell, names with a line feed among it,
// counts as unknown.
StoredFiles parse_stored_files(std::string_view content);

// In the file `.stored-files` of the run's place; empty where it is not there.
StoredFiles read_stored_files(const std::string& place);
void write_stored_files(const std::string& place, const StoredFiles& files);

}  // namespace mox::file::internal
