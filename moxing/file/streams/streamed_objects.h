// The small objects of a data set, each read whole, in any order and again in every pass, by any number of
// threads: fetched into the memory of streamed_file.h, and compared with their MD5 where the store gives one.
//
// Every pass sees the same content: an object whose ETag is another one than it was in the listing, or where
// none is known in the first answer, is an IoError that names both. (Memory: about 90 bytes an object.)
// Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mox::file {

class StreamedObjects {
 public:
  // The ETag that each object is listed with; "" where it is not known.
  explicit StreamedObjects(std::vector<std::string> etags);

  // An object of at most 256 MiB, by its number; `url` is the same in every call.
  std::shared_ptr<const std::string> read(int64_t index, const std::string& url) const;
  void will_read(int64_t index, const std::string& url) const;

 private:
  struct Versions;
  const std::shared_ptr<Versions> versions_;  // requests that are on their way share it
};

}  // namespace mox::file
