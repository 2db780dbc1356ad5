// .npz: a zip archive (PKWARE's APPNOTE.TXT, 4.3; members are stored) of .npy files (numpy.lib.format,
// version 1.0).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "moxing/formats/npy.h"
#include "moxing/prediction/internal/formats.h"
#include "moxing/prediction/internal/predictions_part_file.h"
#include "moxing/prediction/internal/unicode_names.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::internal {
namespace {

constexpr uint64_t kMostBytes = UINT32_MAX;  // of an archive without zip64

template <typename T>
void append_little(std::string& bytes, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

// The table of all rows, of which `of_batch` has some. NumPy has no bfloat16.
TensorType table_type(DType dtype, int64_t rows, const Shape& of_batch) {
  std::vector<int64_t> extents{rows};
  for (int axis = 1; axis < of_batch.rank(); ++axis) extents.push_back(of_batch[axis]);
  return {dtype == DType::kBFloat16 ? DType::kFloat32 : dtype, Shape(std::move(extents))};
}

// The code points of UTF-8.
std::u32string code_points(const std::string& text) {
  std::u32string points;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    char32_t point = length == 1 ? first : first & (0x7f >> length);
    for (size_t k = 1; k < length; ++k) point = point << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3f);
    points += point;
    i += length;
  }
  return points;
}

class ZipArchive {
 public:
  explicit ZipArchive(PredictionsPartFile& file) : file_(file) {}

  void add(const std::string& name, std::string_view header, std::string_view content) {
    const uint32_t crc = crc32(std::as_bytes(std::span(content)), crc32(std::as_bytes(std::span(header))));
    const uint32_t size = header.size() + content.size();
    const std::string entry = common(crc, size, name);
    central_ += std::string("PK\x01\x02\x14\x00", 6) + entry;
    append_little(central_, uint16_t{0});  // comment
    append_little(central_, uint16_t{0});  // disk
    append_little(central_, uint16_t{0});  // internal attributes
    append_little(central_, uint32_t{0});  // external attributes
    append_little(central_, offset_);
    central_ += name;
    ++members_;
    write(std::string("PK\x03\x04", 4) + entry + name);
    write(header);
    write(content);
  }

  void finish() {
    std::string end("PK\x05\x06\0\0\0\0", 8);
    append_little(end, members_);
    append_little(end, members_);
    append_little(end, static_cast<uint32_t>(central_.size()));
    append_little(end, offset_);
    append_little(end, uint16_t{0});
    write(central_);
    write(end);
  }

 private:
  // What both headers of a member have: version, flags (names are UTF-8), method (stored), a fixed time (so
  // that equal predictions are equal files), checksum, sizes, length of the name and of nothing more.
  static std::string common(uint32_t crc, uint32_t size, const std::string& name) {
    std::string bytes;
    for (const uint16_t number : {0x14, 0x800, 0, 0, 0x21}) append_little(bytes, number);
    for (const uint32_t number : {crc, size, size}) append_little(bytes, number);
    append_little(bytes, static_cast<uint16_t>(name.size()));
    append_little(bytes, uint16_t{0});
    return bytes;
  }
  void write(std::string_view bytes) {
    file_.write(bytes);
    offset_ += static_cast<uint32_t>(bytes.size());
  }

  PredictionsPartFile& file_;
  std::string central_;
  uint32_t offset_ = 0;
  uint16_t members_ = 0;
};

class NpzPredictions : public PredictionsFile {
 public:
  explicit NpzPredictions(const std::string& path) : file_(path), text_of_(path) {}

  void add(const OutputBatch& batch) override {
    if (rows_ == 0) {
      first_ = batch;
      columns_.resize(batch.size());
    }
    require_like_first(batch, first_);
    for (size_t i = 0; i < batch.size(); ++i) append(columns_[i], batch[i].second);
    for (int64_t row = 0; row < batch.samples(); ++row) samples_.push_back(batch.first_sample + row);
    for (const std::string& name : batch.sample_names) {
      names_.push_back(code_points(text_of_(name)));
      longest_name_ = std::max(longest_name_, names_.back().size());
    }
    rows_ += batch.samples();
    // In the table of names each has the room of the longest.
    uint64_t bytes = samples_.size() * sizeof(int64_t) + names_.size() * longest_name_ * sizeof(char32_t);
    for (const std::string& column : columns_) bytes += column.size();
    if (bytes > kMostBytes / 2 + kMostBytes / 4)
      throw InvalidArgument(fmt::format(
          "the predictions are too large for '{}' ({} rows so far, {} bytes): write .jsonl or .csv instead",
          file_.path(), rows_, bytes));
  }

  void finish() override {
    ZipArchive archive(file_);
    archive.add("sample.npy", data::make_npy_header({DType::kInt64, {rows_}}), bytes_of(samples_));
    if (!names_.empty()) {
      std::u32string table;
      for (auto& name : names_) {
        name.resize(longest_name_);
        table += name;
      }
      archive.add("file.npy", data::make_npy_header(fmt::format("<U{}", longest_name_), {rows_}),
                  bytes_of(table));
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto& [name, value] = first_[i];
      archive.add(name + ".npy", data::make_npy_header(table_type(value.dtype(), rows_, value.shape())),
                  columns_[i]);
    }
    archive.finish();
    file_.finish();
  }

 private:
  template <typename Container>
  static std::string_view bytes_of(const Container& numbers) {
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(numbers[0])};
  }
  static void append(std::string& column, const Array& value) {
    if (value.dtype() != DType::kBFloat16) {
      column.append(reinterpret_cast<const char*>(value.data()), value.bytes());
      return;
    }
    for (const BFloat16 number : value.values<BFloat16>()) {
      const auto wide = static_cast<float>(number);
      column.append(reinterpret_cast<const char*>(&wide), sizeof wide);
    }
  }

  PredictionsPartFile file_;
  OutputBatch first_;
  UnicodeNames text_of_;
  std::vector<std::string> columns_;
  std::vector<int64_t> samples_;
  std::vector<std::u32string> names_;
  size_t longest_name_ = 1;  // NumPy has no text type of no letters
};

}  // namespace

std::unique_ptr<PredictionsFile> open_npz(const std::string& path) {
  return std::make_unique<NpzPredictions>(path);
}

}  // namespace mox::internal
