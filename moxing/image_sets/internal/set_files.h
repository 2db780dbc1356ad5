// The files of a data set, each read whole: of this machine, or objects of a store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "moxing/formats/tfrecord.h"

namespace mox::file {
class StreamedObjects;
}

namespace mox::data::internal {

// Any number of threads.
class SetFiles {
 public:
  // `names` from the directory; "" for names that are whole paths. `etags` of the listing, of objects; empty
  // where they are not known.
  SetFiles(std::string directory, std::vector<std::string> names, std::vector<std::string> etags = {});
  ~SetFiles();

  int64_t size() const { return names_.size(); }
  const std::vector<std::string>& names() const { return names_; }
  std::string path(int64_t index) const;

  // The bytes, in `buffer`. Throws NotFound or IoError; an object that is another one than in the listing, or
  // than in an earlier pass, is an IoError that no `on_bad_sample` passes over.
  std::span<const std::byte> read(int64_t index, RecordBuffer* buffer) const;
  // A hint that an object of a store is read so soon; does nothing for a file.
  void will_read(int64_t index) const;

  // Over sizes, times and numbers of inodes, or ETags. Throws NotFound or IoError.
  uint32_t checksum() const;

 private:
  const std::string directory_;
  const std::vector<std::string> names_, etags_;
  const std::unique_ptr<const file::StreamedObjects> objects_;  // if there is an object among them
};

// The same checksum of whole paths.
uint32_t files_checksum(const std::vector<std::string>& paths);

}  // namespace mox::data::internal
