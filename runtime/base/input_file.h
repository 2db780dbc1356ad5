// A file opened for reading at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace mox {

// Threads: `read_at` from any number at the same time.
class InputFile {
 public:
  // Throws NotFound if there is no such file, IoError if it cannot be opened.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  // Throws IoError for what is not a regular file.
  uint64_t bytes() const;
  // Fills `out` with the bytes from `offset` on. Throws IoError, and DataError if the file ends before.
  void read_at(uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int fd_;
};

}  // namespace mox
