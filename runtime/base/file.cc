#include "runtime/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <immintrin.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/base/crc32c.h"
#include "runtime/base/error.h"
#include "runtime/base/local_name.h"
#include "runtime/base/opened_file.h"
#include "runtime/base/resource_limits.h"

namespace mox {
namespace {

[[noreturn]] void throw_io(std::string_view doing, const std::string& path, int error) {
  throw IoError(fmt::format("cannot {} '{}': {}", doing, path, std::strerror(error)));
}

void write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), 1 << 30));
    if (written < 0) {
      if (errno == EINTR) continue;
      throw_io("write", path, errno);
    }
    bytes = bytes.subspan(written);
  }
}

std::string parent_of(const std::string& path) {
  auto parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string in_hexadecimal(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

bool is_there(const std::filesystem::path& path) {
  require_local_name(path);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return status.type() != std::filesystem::file_type::not_found;
}

bool is_there_as_directory(const std::filesystem::path& path) {
  require_local_name(path);
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

bool is_there_as_file(const std::filesystem::path& path) {
  require_local_name(path);
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

std::string read_file(const std::string& path) { return read_open_file(open_regular_file(path), path); }

std::string read_open_file(const FileDescriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_io("stat", path, errno);
  const size_t bytes = status.st_size;
  require_memory(bytes, path);
  std::string content;
  content.reserve(bytes);
  ask_for_huge_pages(content.data(), bytes);
  content.resize(bytes);
  off_t offset = 0;
  const auto read_into = [&](std::span<char> out) {
    for (size_t filled = 0; filled < out.size();) {
      const ssize_t got = ::pread(file.get(), out.data() + filled, out.size() - filled, offset);
      if (got < 0 && errno != EINTR) throw_io("read", path, errno);
      if (got == 0) return filled;
      filled += std::max<ssize_t>(got, 0);
      offset += std::max<ssize_t>(got, 0);
    }
    return out.size();
  };
  content.resize(read_into(content));
  // It may have grown since; without asking for more memory where it has not.
  for (std::array<char, 4096> more; content.size() >= bytes;) {
    const size_t got = read_into(more);
    content.append(more.data(), got);
    if (got < more.size()) break;
  }
  return content;
}

void write_file_atomically(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  require_local_name(path);
  // Nobody can take a name that he does not know, nor all there may be.
  const std::string temporary = fmt::format("{}.tmp.{}.{}", path, ::getpid(), unforeseeable_number());
  FileDescriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions_in_place_of(path)));
  if (file.get() < 0) throw_io("create", temporary, errno);
  try {
    for (auto piece : pieces) write_all(file.get(), piece, temporary);
    if (::fsync(file.get()) != 0) throw_io("flush", temporary, errno);
    if (::close(file.release()) != 0) throw_io("close", temporary, errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw_io("rename a finished file to", path, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_directory(parent_of(path));
}

void write_file_atomically(const std::string& path, std::string_view content) {
  const std::span<const std::byte> piece = std::as_bytes(std::span(content.data(), content.size()));
  write_file_atomically(path, std::span(&piece, 1));
}

void make_directories(const std::string& path) {
  require_local_name(path);
  // What a shell would have put something in for: nobody means a directory of that name.
  if (path == "~" || path.starts_with("~/") || path.starts_with("$HOME") ||
      path.find("${") != std::string::npos)
    throw InvalidArgument(
        fmt::format("'{}' holds a ~ or a variable, which only shells and options replace; write "
                    "the directory out",
                    path));
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return;
  if (!is_unusable_place(error.value())) throw_io("make the directory", path, error.value());
  throw UnusablePlace(fmt::format("cannot make the directory '{}': {}", path, std::strerror(error.value())));
}

void sync_directory(const std::string& path) {
  const FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) throw_io("open the directory", path, errno);
  // Some file systems cannot sync a directory and say EINVAL; the rename is then as durable as they make it.
  if (::fsync(directory.get()) != 0 && errno != EINVAL) throw_io("flush the directory", path, errno);
}

uint32_t crc32(std::span<const std::byte> bytes, uint32_t previous) {
  return static_cast<uint32_t>(
      ::crc32_z(previous, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// With the processor's own instruction, which every x86-64-v3 machine (the least we build for) has.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t previous) {
  uint64_t crc = ~previous;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  uint32_t narrow = crc;
  for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, std::to_integer<uint8_t>(*at));
  return ~narrow;
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  MOX_ASSERT(context_ && EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), EVP_sha256(), nullptr) == 1,
             "SHA-256 is available");
}
Sha256::~Sha256() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }
void Sha256::update(std::span<const std::byte> bytes) {
  MOX_ASSERT(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), bytes.data(), bytes.size()) == 1,
             "SHA-256");
}
void Sha256::update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }
std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  MOX_ASSERT(EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_), digest, &length) == 1, "SHA-256");
  return in_hexadecimal({digest, length});
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  MOX_ASSERT(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                  reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest, &length),
             "HMAC-SHA-256 is available");
  return in_hexadecimal({digest, length});
}

}  // namespace mox
