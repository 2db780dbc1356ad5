// Whole-file reading and atomic, durable writing. Every failure throws with the path and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace mox {

// Whether there is something under this name. What may not be looked at, or is a link to itself, counts:
// opening it says what is wrong. (std::filesystem's functions of these names throw exceptions of their own
// for it.)
bool is_there(const std::filesystem::path& path);
// Whether it is a directory, a regular file, or a link to one.
bool is_there_as_directory(const std::filesystem::path& path);
bool is_there_as_file(const std::filesystem::path& path);

// The content of a file. Throws NotFound if it does not exist, IoError if it cannot be read.
std::string read_file(const std::string& path);

// Writes a file so that a reader, or a crash at any moment, sees either the old content or the whole new one:
// the bytes go to a temporary name in the same directory, are fsynced, renamed over `path`, and the directory
// is fsynced. On any failure (IoError) the temporary file is removed and `path` is as before.
void write_file_atomically(const std::string& path, std::span<const std::span<const std::byte>> pieces);
void write_file_atomically(const std::string& path, std::string_view content);

// Makes a directory and its parents. Throws IoError, and InvalidArgument for a name that holds "${" or begins
// with "~/" or "$HOME": whoever gives one means what a shell puts there.
void make_directories(const std::string& path);

// fsyncs a directory, so that a rename inside it survives a power cut. Throws IoError.
void sync_directory(const std::string& path);

// CRC-32 (ISO-HDLC, as in zlib and gzip); pass the previous value to continue.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t previous = 0);

// HMAC-SHA-256 (RFC 2104) in 64 hexadecimal digits.
std::string hmac_sha256(std::string_view key, std::string_view message);

// A SHA-256 digest computed piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  std::string hex();  // the digest in 64 hexadecimal digits; call once, last

 private:
  void* context_;
};

}  // namespace mox
