// An object of a store that is read once, from its begin to its end, as a text that is parsed: the ranges
// that follow are on their way while its reader works on what it has, and what was read leaves memory at
// once. It takes the memory of streamed_file.h, and errors are as there.
//
// With the last bytes the content is compared with what the store says of the whole (its MD5 or those of its
// parts, else its checksum), if it says anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mox::file {

// Threads: one at a time.
class ForwardObject {
 public:
  // At most `ahead` bytes are fetched before they are read, and no more than half of the memory that streams
  // may have; an object that is not larger, and no larger than 16 MiB, comes in one request. 0: one range
  // after the other as they are read, and the whole is not compared, as who reads a begin wants it.
  // Throws NotFound, and FailedPrecondition for what names a directory.
  ForwardObject(const std::string& url, int64_t ahead);
  ~ForwardObject();

  int64_t left() const;  // bytes that were not read yet

  // The next bytes, at most left(). With the last ones, DataError if the content is another than
  // the store says.
  void read(std::span<std::byte> out);

 private:
  struct Place;
  void announce() const;

  const std::unique_ptr<Place> place_;
};

}  // namespace mox::file
