// Opens files in directories that others may write to, so that what somebody else has put in a file's place
// (a link to another file, a FIFO that nobody writes to, a device) is neither followed nor waited for.
//
// Every file that the framework opens is opened here, in input_file.h or in new_file.h; tests/layering/check
// sees to it.
#pragma once

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

// For reading and writing a file that is kept and changed in place; made with `mode` if there is none. Throws
// IoError for a link, for a file that has a second name elsewhere, and for what is no regular file.
FileDescriptor open_kept_file(const std::string& path, unsigned mode = 0644);

// Adds to the end of a kept file; `path` is for messages. Throws IoError.
void append_to(const FileDescriptor& file, const std::string& path, std::string_view text);

}  // namespace mox
