// The rows of .npy files, read as they are used.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "moxing/formats/npy.h"
#include "runtime/base/input_file.h"
#include "runtime/data/memory_budget.h"
#include "runtime/data/source.h"
#include "runtime/tensor/array.h"

namespace mox::data::internal {

// Of one file, which must stay as it is: one that is written to is a DataError that names it, as soon as more
// of it is read. A file of Fortran's order, whose rows lie scattered, is read as a whole at once.
class NpyRows {
 public:
  // Throws as read_npy, but for values, which are looked at when they are read.
  explicit NpyRows(const std::string& path);

  const TensorType& type() const { return header_.type; }

  // From now on what was read stays in memory, some neighbours of each row with it, as far as `memory` has
  // room (Share::try_to_grow). Not for use beside others.
  void keep(std::shared_ptr<MemoryBudget> memory);
  bool keeps() const { return kept_.defined(); }

  // Threads: any. Throws IoError and DataError.
  void read(int64_t row, std::byte* to) const;
  // Without a value where not all of these rows are kept.
  std::optional<Array> view(int64_t first, int64_t count) const;
  void will_read(int64_t row) const;

 private:
  void make_room();
  void read_scattered();
  bool has_block(int64_t block) const;
  void read_rows(int64_t first, int64_t count, std::byte* to) const;
  void require_unchanged() const;

  std::string path_;
  InputFile file_;
  InputFile::Version version_;
  NpyHeader header_;
  size_t row_bytes_ = 0, stored_row_bytes_ = 0;  // in memory, in the file

  // What is kept, in blocks of rows: memory that is written to as they are read, and counts from then on.
  Array kept_;
  std::unique_ptr<MemoryBudget::Share> share_;
  mutable std::mutex share_lock_;
  mutable std::atomic<bool> is_full_ = false;  // there was no room for the last block
  std::byte* memory_ = nullptr;
  int64_t block_rows_ = 1;
  std::unique_ptr<std::atomic<bool>[]> is_there_;
  mutable std::array<std::mutex, 16> locks_;  // a block's is at its number's remainder
};

// One component for each file, all of as many rows.
std::shared_ptr<const RandomAccessSource> npy_source(std::vector<std::unique_ptr<NpyRows>> files);

}  // namespace mox::data::internal
