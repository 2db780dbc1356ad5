// Files of records that hold the same: a shard that was copied into the place of another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/function_ref.h"

namespace mox::data::internal {

struct RecordFile {
  std::string path;
  std::string version;                // the ETag of an object; "" of a file on this machine
  std::span<const uint64_t> offsets;  // the records' begins and the last one's end
};

// The trailing checksum of a record of file number `file` that ends at `end`.
using ChecksumAt = FunctionRef<uint32_t(size_t file, uint64_t end)>;

// Warns of files whose records have the same lengths and, where they are looked at (a few of each file), the
// same checksums; of objects in stores, whose ETags are equal: nothing of these is read. Files of one record
// or more alone.
void warn_of_equal_records(const std::vector<RecordFile>& files, ChecksumAt checksum_at);

}  // namespace mox::data::internal
