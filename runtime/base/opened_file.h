// Opens files in directories that others may write to, so that what somebody else has put in a file's place
// (a link to another file, a FIFO that nobody writes to, a device) is neither followed nor waited for.
//
// Every file that the framework opens is opened here, in input_file.h or in new_file.h; tests/layering/check
// sees to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace mox {

// Of 64 bits, for names. Throws IoError.
uint64_t unforeseeable_number();

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
// regular file. Throws NotFound if it does not exist, IoError (naming what is there instead)
// for anything else.
FileDescriptor open_regular_file(const std::string& path);

// For reading what has been kept in a directory that others may write to, and is written there anew with what
// it holds, so that they may read it: not what they have put a link to. As open_regular_file, but
// throws UnusablePlace for a link, and for a file that has a second name elsewhere.
FileDescriptor open_file_to_go_on_with(const std::string& path);

// All that an open file holds; `path` is for messages. Throws IoError.
std::string read_open_file(const FileDescriptor& file, const std::string& path);

// Throws IoError, naming the file `path`, unless `bytes` of it, which are to be read at once, fit into the
// memory that this process may have: by holes a file may be larger than what its disk holds of it. Costs
// nothing for less than 64 MiB.
void require_memory(size_t bytes, const std::string& path);

// For reading and writing a file that is kept and changed in place; made with `mode` if there is none. Throws
// IoError for a link, for another user's file, for one that has a second name elsewhere, and for what is no
// regular file.
FileDescriptor open_kept_file(const std::string& path, unsigned mode = 0644);

// The permissions, before the umask, of a new file that comes in the place of `path`: 0644, or less where
// this user's file of that name lets others read less.
unsigned permissions_in_place_of(const std::string& path);

// Whether what belongs to `owner` in `directory` is this process's own: its user's, or that of whom the file
// system takes it for (of root, where a server lets nobody be root; of everybody, where a mount gives all
// files to one).
bool is_this_users(unsigned owner, const std::string& directory);

// Adds to the end of a kept file; `path` is for messages. Throws IoError.
void append_to(const FileDescriptor& file, const std::string& path, std::string_view text);

// Throws IoError, which says how to go on, if `path` is a link: of directories that are made by us, in places
// that others may write to.
void require_no_link(const std::string& path);

// Where the user names a directory, it may be a link; one that we make is none.
enum class DirectoryLink { kRefused, kFollowed };

// A directory that files are written to, held by itself: what somebody puts into its place meanwhile (a link
// to another directory) is not what is written to.
class HeldDirectory {
 public:
  // Throws IoError if `path` is a link that is refused, or no directory.
  explicit HeldDirectory(std::string path, DirectoryLink link = DirectoryLink::kRefused);
  // The directory `name` in the one that is held, which need not live on. Throws IoError if it is a link, or
  // no directory.
  HeldDirectory(const HeldDirectory& above, std::string_view name);

  // Paths of the directory and of the file `name` in it, for as long as this object lives.
  const std::string& path() const { return held_; }
  std::string file(std::string_view name) const;
  const std::string& name() const { return path_; }  // as it was given
  // A message about such paths, with the directory's own name in its place.
  std::string named(std::string message) const;
  // The error of somebody who was given such paths, with that message.
  [[noreturn]] void throw_named(const IoError& error) const;

 private:
  void look_up();
  [[noreturn]] void refuse(int reason) const;

  std::string path_, held_;  // held_: where the system shows what is held; path_ where it does not
  FileDescriptor directory_;
};

}  // namespace mox
