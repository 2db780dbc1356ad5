// The offsets of the records of one TFRecord file, and the file that caches them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/function_ref.h"

namespace mox::data::internal {

constexpr uint64_t kLengthBytes = 8, kChecksumBytes = 4;
constexpr uint64_t kHeaderBytes = kLengthBytes + kChecksumBytes;
constexpr uint64_t kFrameBytes = kHeaderBytes + kChecksumBytes;  // that a record takes beside its data

// Reads exactly out.size() bytes at `offset`.
using ReadAt = FunctionRef<void(uint64_t offset, std::span<std::byte> out)>;

// Walks over the lengths of a file of `file_bytes`: the records' begins and the last one's end. `progress` is
// called now and then with the offset reached. Throws DataError.
std::vector<uint64_t> walk_records(ReadAt read_at, uint64_t file_bytes, const std::string& name,
                                   FunctionRef<void(uint64_t offset)> progress);

// Checks the frame of one record, header to trailing checksum; returns the data. `offset` is for messages.
std::span<const std::byte> verified_record(std::span<const std::byte> framed, const std::string& name,
                                           uint64_t offset);

// What an index belongs to.
struct FileIdentity {
  uint64_t bytes = 0;
  int64_t modified_nanoseconds = 0;
};

// The offsets that `path` caches for a file of this identity, or nothing if there is no such file, or it is
// damaged or foreign.
std::optional<std::vector<uint64_t>> load_index(const std::string& path, const FileIdentity& identity);

// Throws IoError.
void save_index(const std::string& path, const FileIdentity& identity, std::span<const uint64_t> offsets);

}  // namespace mox::data::internal
