// A file that appears under its name when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/opened_file.h"

namespace mox {

// Written beside `path`, under a name that nobody can know beforehand (".writing-" and 16 hexadecimal
// digits), so that neither another process nor a link put there comes in between.
//
// Threads: one at a time.
class NewFile {
 public:
  explicit NewFile(std::string path);  // throws IoError
  ~NewFile();                          // removes it, unless it was published
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // Both throw IoError. `write` goes on where the last one ended.
  void write(std::span<const std::byte> bytes);
  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  // Syncs file and directory and gives it its name, in whose place it comes; call once, last. Throws IoError.
  void publish();

  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string path_, temporary_;
  FileDescriptor file_;
  uint64_t end_ = 0;
};

// Removes what processes that are gone have left of a NewFile of `path`. Only where no other process makes
// one at the same time. What cannot be removed stays.
void remove_unfinished(const std::string& path);

}  // namespace mox
