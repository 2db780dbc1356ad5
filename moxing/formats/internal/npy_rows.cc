#include "moxing/formats/internal/npy_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "moxing/formats/internal/npy_values.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace mox::data::internal {
namespace {

// Large enough that a disk with heads reads a file in any order of blocks in twice the time of one pass,
// small enough that a first batch of rows from all over a file is there in a moment.
constexpr int64_t kBlockBytes = 1 << 20;

class NpySource : public RandomAccessSource {
 public:
  explicit NpySource(std::vector<std::unique_ptr<NpyRows>> files) : files_(std::move(files)) {
    for (const auto& file : files_) {
      const auto extents = file->type().shape.dims();
      signature_.push_back(
          {file->type().dtype, Shape(std::vector<int64_t>(extents.begin() + 1, extents.end()))});
    }
    has_views_ = std::ranges::all_of(files_, [](const auto& file) { return file->keeps(); });
  }

  int64_t size() const override { return files_[0]->type().shape[0]; }
  const std::vector<TensorType>& signature() const override { return signature_; }

  void read(int64_t index, const SampleContext&, std::span<std::byte* const> components) const override {
    for (size_t c = 0; c < files_.size(); ++c) files_[c]->read(index, components[c]);
  }
  void will_read(int64_t index) const override {
    for (const auto& file : files_) file->will_read(index);
  }
  bool view(int64_t first, int64_t count, std::vector<Array>* rows) const override {
    if (!has_views_) return false;
    std::vector<Array> views;
    for (const auto& file : files_) {
      std::optional<Array> view = file->view(first, count);
      if (!view) return false;
      views.push_back(*std::move(view));
    }
    *rows = std::move(views);
    return true;
  }

  // What it is for the arrays that the files hold: a run goes on with the cursor of one that had them.
  std::string describe() const override { return fmt::format("from_arrays({})", size()); }

 private:
  std::vector<std::unique_ptr<NpyRows>> files_;
  std::vector<TensorType> signature_;
  bool has_views_ = false;
};

}  // namespace

NpyRows::NpyRows(const std::string& path) : path_(path), file_(path), version_(file_.version()) {
  std::vector<std::byte> begin(std::min<uint64_t>(kNpyHeaderBytes, version_.bytes));
  file_.read_at(0, begin);
  header_ = parse_npy_header(begin, path);
  bytes_of_values(header_, version_.bytes, path);
  const Shape& shape = header_.type.shape;
  if (shape.rank() == 0) return;
  if (shape.rank() == 1) header_.fortran_order = false;  // there is one order
  const int64_t rows = shape[0];
  row_bytes_ = rows == 0 ? 0 : header_.type.bytes() / rows;
  stored_row_bytes_ = row_bytes_ / size_of(header_.type.dtype) * stored_bytes(header_);
  if (header_.fortran_order) make_room();
}

void NpyRows::keep(std::shared_ptr<MemoryBudget> memory) {
  share_ = std::make_unique<MemoryBudget::Share>(std::move(memory), MemoryBudget::Share::Of::kCache);
  if (!keeps()) return make_room();
  // All of it, in any case: others are not to be refused for it.
  if (!share_->try_to_grow(header_.type.bytes()))
    log_warning(
        fmt::format("'{}' has its rows in Fortran's order, so that all of it is in memory: {} bytes, for "
                    "which the memory of data pipelines has no room ({}). Save it in C order "
                    "(numpy.ascontiguousarray), or raise {}",
                    path_, header_.type.bytes(), share_->budget().describe(), share_->budget().option()));
}

void NpyRows::make_room() {
  const int64_t rows = header_.type.shape[0];
  block_rows_ = row_bytes_ == 0 ? std::max<int64_t>(rows, 1)
                                : std::max<int64_t>(kBlockBytes / static_cast<int64_t>(row_bytes_), 1);
  const size_t blocks = (rows + block_rows_ - 1) / block_rows_;
  is_there_ = std::make_unique<std::atomic<bool>[]>(blocks);
  try {
    kept_ = Array::uninitialized(header_.type);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(fmt::format("'{}': {}", path_, error.what()));
  }
  memory_ = kept_.data();
  if (!header_.fortran_order) return;
  read_scattered();
  for (size_t i = 0; i < blocks; ++i) is_there_[i] = true;
}

// All of a file of Fortran's order.
void NpyRows::read_scattered() {
  NpyConversion conversion(header_, kept_);
  const size_t bytes = header_.type.shape.elements() * stored_bytes(header_);
  std::vector<std::byte> stored(std::min<size_t>(bytes, kBlockBytes));  // whole values
  for (size_t done = 0; done < bytes; done += stored.size()) {
    stored.resize(std::min(stored.size(), bytes - done));
    file_.read_at(header_.data_begin + done, stored);
    if (header_.type.dtype == DType::kBool) NpyPlace{path_, header_.data_begin}.require_bools(stored, done);
    conversion.take(stored);
  }
  require_unchanged();
}

void NpyRows::read(int64_t row, std::byte* to) const {
  if (row_bytes_ == 0) return;
  if (!keeps() || !has_block(row / block_rows_)) return read_rows(row, 1, to);
  std::memcpy(to, memory_ + row * row_bytes_, row_bytes_);
}

std::optional<Array> NpyRows::view(int64_t first, int64_t count) const {
  if (!keeps()) return std::nullopt;
  for (int64_t block = first / block_rows_; block * block_rows_ < first + count; ++block)
    if (!has_block(block)) return std::nullopt;
  return kept_.rows(first, first + count);
}

void NpyRows::will_read(int64_t row) const {
  if (!keeps()) return file_.will_read(header_.data_begin + row * stored_row_bytes_, stored_row_bytes_);
  const int64_t block = row / block_rows_;
  if (!is_there_[block].load(std::memory_order_acquire)) {
    const int64_t rows = is_full_ ? 1 : block_rows_, first = is_full_ ? row : block * block_rows_;
    return file_.will_read(header_.data_begin + first * stored_row_bytes_, rows * stored_row_bytes_);
  }
  // The hardware follows a row once its first lines are on their way.
  constexpr size_t kLine = 64, kLinesAhead = 8;
  for (size_t at = 0; at < std::min(row_bytes_, kLine * kLinesAhead); at += kLine)
    __builtin_prefetch(memory_ + row * row_bytes_ + at);
}

// Whether a block is kept, from now on if there is room for it.
bool NpyRows::has_block(int64_t block) const {
  std::atomic<bool>& is_there = is_there_[block];
  if (is_there.load(std::memory_order_acquire)) return true;
  const int64_t first = block * block_rows_, count = std::min(block_rows_, header_.type.shape[0] - first);
  const size_t bytes = count * row_bytes_;
  if (is_full_ && share_->budget().room_to_grow() < bytes) return false;  // no thread waits for it
  const std::lock_guard lock(locks_[block % locks_.size()]);
  if (is_there.load(std::memory_order_relaxed)) return true;
  {
    const std::lock_guard share_lock(share_lock_);
    is_full_ = !share_->try_to_grow(bytes);
    if (is_full_) return false;
  }
  try {
    read_rows(first, count, memory_ + first * row_bytes_);
  } catch (...) {
    const std::lock_guard share_lock(share_lock_);
    share_->resize(share_->bytes() - bytes);
    throw;
  }
  is_there.store(true, std::memory_order_release);
  return true;
}

void NpyRows::read_rows(int64_t first, int64_t count, std::byte* to) const {
  const uint64_t begin = first * stored_row_bytes_;
  const size_t bytes = count * stored_row_bytes_;
  std::vector<std::byte> stored(header_.plain() ? 0 : bytes);
  const std::span<std::byte> values = header_.plain() ? std::span(to, bytes) : std::span(stored);
  file_.read_at(header_.data_begin + begin, values);
  require_unchanged();
  if (header_.type.dtype == DType::kBool) NpyPlace{path_, header_.data_begin}.require_bools(values, begin);
  if (!header_.plain()) convert_values(header_, values, to);
}

// After what was read: a file's time changes before its bytes do.
void NpyRows::require_unchanged() const {
  const InputFile::Version now = file_.version();
  if (now == version_) return;
  throw DataError(fmt::format(
      "'{}' was written to after it had been opened ({} bytes then, {} now): its rows are read as "
      "they are used, and must stay as they are until then. Begin anew; and where a file is to "
      "change during a run, write the new one elsewhere and rename it into its place",
      path_, version_.bytes, now.bytes));
}

std::shared_ptr<const RandomAccessSource> npy_source(std::vector<std::unique_ptr<NpyRows>> files) {
  return std::make_shared<NpySource>(std::move(files));
}

}  // namespace mox::data::internal
