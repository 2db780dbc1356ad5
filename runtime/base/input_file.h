// A file opened for reading at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/opened_file.h"

namespace mox {

// Threads: `read_at` from any number at the same time.
class InputFile {
 public:
  // Throws NotFound if there is no such file, IoError if it cannot be opened or is not a regular file.
  explicit InputFile(const std::string& path);

  uint64_t bytes() const;  // throws IoError
  // Another one, if the file has been written to.
  struct Version {
    uint64_t bytes = 0;
    int64_t modified = 0;  // nanoseconds
    bool operator==(const Version&) const = default;
  };
  Version version() const;  // throws IoError
  // Fills `out` with the bytes from `offset` on. Throws IoError, and DataError if the file ends before.
  void read_at(uint64_t offset, std::span<std::byte> out) const;
  // A hint that these bytes are read soon.
  void will_read(uint64_t offset, uint64_t bytes) const;

 private:
  std::string path_;
  FileDescriptor file_;
};

}  // namespace mox
