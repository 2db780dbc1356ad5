// Opens files in directories that others may write to, so that what somebody else has put in a file's place
// (a link to another file, a FIFO that nobody writes to, a device) is neither followed nor waited for.
//
// Every file that the framework opens is opened here, in input_file.h or in new_file.h; tests/layering/check
// sees to it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mox {

// Owns a file descriptor; -1: none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor = -1) : descriptor_(descriptor) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  int get() const { return descriptor_; }
  int release();

 private:
  int descriptor_;
};

// For reading. Links are followed, since data sets are put into place by links; what they lead to must be a
// regular file. Throws NotFound if it does not exist, IoError (naming what is there instead) for anything
// else.
FileDescriptor open_regular_file(const std::string& path);

// Throws IoError, naming the file `path`, unless `bytes` of it, which are to be read at once, fit into the
// memory that this process may have: by holes a file may be larger than what its disk holds of it. Costs
// nothing for less than 64 MiB.
void require_memory(size_t bytes, const std::string& path);

// For reading and writing a file that is kept and changed in place; made with `mode` if there is none. Throws
// IoError for a link, for a file that has a second name elsewhere, and for what is no regular file.
FileDescriptor open_kept_file(const std::string& path, unsigned mode = 0644);

// Adds to the end of a kept file; `path` is for messages. Throws IoError.
void append_to(const FileDescriptor& file, const std::string& path, std::string_view text);

// A directory that files are written to, held by itself: what somebody puts into its place meanwhile (a link
// to another directory) is not what is written to.
class HeldDirectory {
 public:
  // Throws IoError if `path` is a link, or no directory.
  explicit HeldDirectory(std::string path);

  // A path of the file `name` in it, for as long as this object lives.
  std::string file(std::string_view name) const;
  // A message about such a path, with the directory's own name in its place.
  std::string named(std::string message) const;

 private:
  std::string path_, held_;  // held_: where the system shows what is held; path_ where it does not
  FileDescriptor directory_;
};

}  // namespace mox
