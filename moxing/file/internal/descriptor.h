// Owning a file descriptor, and what is done with one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mox::file::internal {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return fd_; }
  int release();

 private:
  int fd_ = -1;
};

// IoError "cannot DOING 'PATH': what the system says".
[[noreturn]] void throw_system(std::string_view doing, const std::string& path, int error);

// All of them write or read as much as is asked for, or throw IoError. read_fully returns less at the end of
// the file.
void write_fully(int fd, std::string_view content, const std::string& path);
void write_fully_at(int fd, std::string_view content, int64_t offset, const std::string& path);
std::string read_fully_at(int fd, int64_t offset, int64_t length, const std::string& path);

// Opens an ordinary file for reading. NotFound, FailedPrecondition for a directory, IoError for anything that
// is no ordinary file (reading a pipe would wait for ever).
Descriptor open_ordinary_file(const std::string& path);

// Opens a file for writing with these flags of open(2). NotFound and FailedPrecondition as above, IoError for
// a pipe or a socket (nobody may ever read it); a device may be written to. A link in the file's own place is
// followed if it is this user's or root's; another user's is UnusablePlace, an IoError.
Descriptor open_for_writing(const std::string& path, int flags);

// That a file may come into the place of what has this name, if anything has: FailedPrecondition for a
// directory, IoError for anything that is no ordinary file. A link counts as what it leads to.
void require_replaceable_file(const std::string& path);

// Writes what the system has of the file to the disk. Throws IoError.
void sync_file(int fd, const std::string& path);

}  // namespace mox::file::internal
