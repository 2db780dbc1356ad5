// mox::file::File: an open file, local or an object in a store.
//
//   mox::file::File file("s3://bucket/log.txt", "r");
//   for (std::string line; file.readline(line);) ...
//
// Modes, each also with "b", which changes nothing here:
//   r   reads; the file must exist              r+  reads and writes, from the begin; the file must exist
//   w   writes; begins empty                    w+  reads and writes; begins empty
//   a   writes at the end, whatever seek says   a+  the same, and reads; begins at the end
//
// An object is read in ranges, ahead of the reader; if it is replaced meanwhile, that is an error. One that
// is written is kept in a temporary file, and uploaded whole by flush and close: until then the store has the
// old one.
//
// A local file that is written may be a link of this user's or root's; another user's link is an IoError.
//
// Errors as in file.h. Not for use by several threads at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mox::file {

class File {
 public:
  // Throws InvalidArgument for a mode that is none of the above, NotFound, FailedPrecondition
  // for a directory.
  explicit File(const std::string& url, std::string_view mode = "r");

  // Closes; what fails is logged, so call close() where it matters. While an exception is on its way, an
  // object that was being written is left as it was.
  ~File();
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;

  // At most `size` bytes (all that is left by default); fewer only at the end of the file.
  std::string read(int64_t size = -1);

  // Sets `*line` to the next line, with its "\n" if it has one. False at the end of the file.
  bool readline(std::string& line);

  // All lines that are left, each with its "\n".
  std::vector<std::string> readlines();

  enum class From { kBegin, kCurrent, kEnd };
  // Moves to a byte, which may lie beyond the end; returns its place. InvalidArgument before the begin.
  int64_t seek(int64_t offset, From from = From::kBegin);
  int64_t tell() const;

  void write(std::string_view content);
  void writelines(const std::vector<std::string>& lines);  // adds no "\n"

  // What was written is in the file (a local one: with the system; an object: in the store).
  void flush();

  // Flushes and closes; a second call does nothing. Every other call after it is a FailedPrecondition.
  void close();

  class Implementation;

 private:
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace mox::file
