// Decompresses a gzip file held in memory, piece by piece, into memory that the caller has bounded.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace mox::data {

// Whether `content` starts with gzip's magic bytes.
bool is_gzip(std::span<const std::byte> content);

// An upper bound on the decompressed size: deflate cannot do better than 1032 to 1.
size_t most_gzip_output(size_t compressed_bytes);

class GzipReader {
 public:
  // `content` must outlive the reader; `path` is for messages.
  GzipReader(std::span<const std::byte> content, std::string path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Fills `out` and returns how many bytes were written: fewer than out.size() only at the end of the file,
  // all of whose members and checksums have then been verified. Throws DataError, with the offset in the
  // compressed file, for a damaged or truncated file and for bytes after the last member.
  size_t read(std::span<std::byte> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mox::data
