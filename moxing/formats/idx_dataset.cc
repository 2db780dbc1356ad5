#include "moxing/formats/idx_dataset.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "moxing/formats/internal/gzip.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::data {
namespace {

constexpr size_t kMagicBytes = 4, kDimensionBytes = 4;

[[noreturn]] void fail(const std::string& path, size_t offset, const std::string& what) {
  throw DataError(fmt::format("'{}', offset {}: {}", path, offset, what));
}

uint32_t big_endian(const std::byte* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(bytes[i]);
  return value;
}

DType dtype_of_code(const std::string& path, uint32_t code) {
  switch (code) {
    case 0x08:
      return DType::kUInt8;
    case 0x0C:
      return DType::kInt32;
    case 0x0D:
      return DType::kFloat32;
    case 0x09:
    case 0x0B:
    case 0x0E:
      fail(path, 2,
           fmt::format("values of type {:#04x} (int8, int16 and float64) have no dtype here; expected 0x08 "
                       "(uint8), 0x0c (int32) or 0x0d (float32); convert the file",
                       code));
    default:
      fail(path, 2, fmt::format("{:#04x} is no type code of IDX; expected 0x08, 0x0c or 0x0d", code));
  }
}

// The bytes of the file, decompressed as they are asked for.
class Content {
 public:
  Content(std::span<const std::byte> file, const std::string& path) : file_(file) {
    if (is_gzip(file)) gzip_ = std::make_unique<GzipReader>(file, path);
  }

  size_t read(std::span<std::byte> out) {
    if (gzip_) return gzip_->read(out);
    const size_t count = std::min(out.size(), file_.size() - taken_);
    if (count != 0) std::memcpy(out.data(), file_.data() + taken_, count);
    taken_ += count;
    return count;
  }

  // No more than this can follow in all.
  size_t at_most() const { return gzip_ ? most_gzip_output(file_.size()) : file_.size(); }
  bool compressed() const { return gzip_ != nullptr; }

 private:
  std::span<const std::byte> file_;
  size_t taken_ = 0;
  std::unique_ptr<GzipReader> gzip_;
};

std::string where_measured(const Content& content) {
  return content.compressed() ? "the decompressed file" : "the file";
}

// The type that the header declares; sets `*header_bytes`.
TensorType read_header(Content& content, const std::string& path, size_t* header_bytes) {
  std::byte magic[kMagicBytes];
  if (const size_t got = content.read(magic); got < kMagicBytes)
    fail(path, got,
         fmt::format("{} ends inside the magic number: 4 bytes expected, {} given", where_measured(content),
                     got));
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0})
    fail(path, 0,
         fmt::format("wrong magic number {:#010x}: an IDX file starts with two zero bytes",
                     big_endian(magic)));
  const DType dtype = dtype_of_code(path, std::to_integer<uint32_t>(magic[2]));
  const size_t rank = std::to_integer<size_t>(magic[3]);
  if (rank == 0) fail(path, 3, "the file declares no dimensions; at least 1 expected");
  *header_bytes = kMagicBytes + rank * kDimensionBytes;
  std::vector<std::byte> extents(rank * kDimensionBytes);
  if (const size_t got = content.read(extents); got < extents.size())
    fail(path, kMagicBytes + got,
         fmt::format("{} ends inside the {} dimensions: {} bytes expected, {} given", where_measured(content),
                     rank, extents.size(), got));
  std::vector<int64_t> dims;
  uint64_t bytes = size_of(dtype);
  const uint64_t most =
      static_cast<uint64_t>(Shape::kMostElements) * bytes;  // the Shape counts an extent of 0 as 1, too
  bool overflow = false, empty = false;
  for (size_t i = 0; i < rank; ++i) {
    dims.push_back(big_endian(&extents[i * kDimensionBytes]));
    if (dims.back() == 0)
      empty = true;
    else
      overflow |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(dims.back()), &bytes) || bytes > most;
  }
  if (overflow || (!empty && bytes > content.at_most()))
    fail(path, kMagicBytes,
         fmt::format("dimensions [{}] of {} need {} bytes, more than the {} of this {}file can hold",
                     fmt::join(dims, ", "), to_string(dtype),
                     overflow ? fmt::format("over {}", most) : fmt::format("{}", bytes), content.at_most(),
                     content.compressed() ? "compressed " : ""));
  return {dtype, Shape(std::move(dims))};
}

void to_native_order(Array& array) {
  if constexpr (std::endian::native == std::endian::big) return;
  if (size_of(array.dtype()) == 1) return;
  for (size_t at = 0; at < array.bytes(); at += 4) {
    const uint32_t value = big_endian(array.data() + at);
    std::memcpy(array.data() + at, &value, sizeof value);
  }
}

// value / 255, correctly rounded: a product with the reciprocal, and one step of correction by
// the exact remainder.
void scale(const uint8_t* values, size_t count, float* out) {
  constexpr float kReciprocal = 1.0f / 255.0f;
  for (size_t i = 0; i < count; ++i) {
    const float value = values[i];
    const float quotient = value * kReciprocal;
    out[i] = std::fma(std::fma(-quotient, 255.0f, value), kReciprocal, quotient);
  }
}

class IdxSource : public RandomAccessSource {
 public:
  // `images` is uint8 [samples, ...], `labels` int32 [samples].
  IdxSource(Array images, Array labels, const IdxOptions& options)
      : images_(std::move(images)), labels_(std::move(labels)) {
    pixels_ = 1;
    for (int axis = 1; axis < images_.shape().rank(); ++axis) pixels_ *= images_.shape()[axis];
    raw_ = options.raw;
    signature_ = {{raw_ ? DType::kUInt8 : DType::kFloat32, options.image_shape.value_or(Shape{pixels_})},
                  {DType::kInt32, Shape{}}};
    checksum_ = crc32(labels_.as_bytes(), crc32(images_.as_bytes()));
  }

  int64_t size() const override { return labels_.elements(); }
  const std::vector<TensorType>& signature() const override { return signature_; }

  void read(int64_t index, const SampleContext&, std::span<std::byte* const> components) const override {
    const size_t pixels = pixels_;
    if (raw_) {
      if (pixels != 0) std::memcpy(components[0], image(index), pixels);
    } else {
      scale(image(index), pixels, reinterpret_cast<float*>(components[0]));
    }
    std::memcpy(components[1], &labels_.values<int32_t>()[index], sizeof(int32_t));
  }

  void will_read(int64_t index) const override {
    constexpr int64_t kLine = 64, kLinesAhead = 16;
    for (int64_t at = 0; at < std::min(pixels_, kLine * kLinesAhead); at += kLine)
      __builtin_prefetch(image(index) + at);
  }

  std::string describe() const override {
    return fmt::format("idx({}, crc {:08x})", to_string(images_.type()), checksum_);
  }

 private:
  const uint8_t* image(int64_t index) const {
    return reinterpret_cast<const uint8_t*>(images_.data()) + index * pixels_;
  }

  Array images_, labels_;
  int64_t pixels_;
  bool raw_;
  std::vector<TensorType> signature_;
  uint32_t checksum_;
};

Array checked_labels(const Array& file, const std::string& path, const IdxOptions& options) {
  Array labels(DType::kInt32, Shape{file.elements()});
  auto values = labels.values<int32_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = file.dtype() == DType::kUInt8 ? file.values<uint8_t>()[i] : file.values<int32_t>()[i];
    if (options.num_classes && (values[i] < 0 || values[i] >= *options.num_classes))
      fail(path, kMagicBytes + kDimensionBytes + i * size_of(file.dtype()),
           fmt::format("label {} of sample {} is out of range: expected 0 to {}", values[i], i,
                       *options.num_classes - 1));
  }
  return labels;
}

// The first of the usual spellings of a name that exists in `directory`.
std::string find_file(const std::string& directory, const std::string& stem, const std::string& type) {
  constexpr const char* kWhereToFind =
      "Fashion-MNIST comes with the Debian package dataset-fashion-mnist (apt-get install "
      "dataset-fashion-mnist), in /usr/share/datasets/fashion-mnist";
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored))
    throw NotFound(fmt::format("the data set's directory '{}' {} (the flag data_url, in most programs). {}",
                               directory, directory.empty() ? "is not set" : "is no directory",
                               kWhereToFind));
  std::string tried;
  for (const std::string& name :
       {stem + "-" + type, stem + "-" + type + ".gz", stem + "." + type, stem + "." + type + ".gz"}) {
    const auto path = std::filesystem::path(directory) / name;
    std::error_code error;
    if (std::filesystem::exists(path, error)) return path.string();
    tried += (tried.empty() ? "" : ", ") + name;
  }
  throw NotFound(fmt::format("no {} file in '{}': tried {}. {}", stem, directory, tried, kWhereToFind));
}

}  // namespace

Array parse_idx(std::span<const std::byte> file, const std::string& path) {
  Content content(file, path);
  size_t header_bytes = 0;
  Array array = Array::uninitialized(read_header(content, path, &header_bytes));
  if (const size_t got = content.read({array.data(), array.bytes()}); got < array.bytes())
    fail(path, header_bytes + got,
         fmt::format("{} is cut off: {} needs {} bytes after the header, {} given", where_measured(content),
                     to_string(array.type()), array.bytes(), got));
  // One byte more than declared tells a file that goes on from one that ends (and has zlib check the sum at
  // its end).
  std::byte excess;
  if (content.read({&excess, 1}) != 0)
    fail(path, header_bytes + array.bytes(),
         fmt::format("{} goes on after the {} bytes that {} needs", where_measured(content), array.bytes(),
                     to_string(array.type())));
  to_native_order(array);
  return array;
}

Array read_idx(const std::string& path) {
  const std::string content = read_file(path);
  return parse_idx(std::as_bytes(std::span(content.data(), content.size())), path);
}

Dataset idx(const std::string& images_path, const std::string& labels_path, IdxOptions options,
            SourceLocation where) {
  if (options.num_classes && *options.num_classes < 1)
    throw InvalidArgument(fmt::format("idx ({}): num_classes must be at least 1, it is {}", to_string(where),
                                      *options.num_classes));
  Array images = read_idx(images_path);
  if (images.dtype() != DType::kUInt8 || images.shape().rank() < 2)
    fail(images_path, 2,
         fmt::format("images are uint8 with two dimensions or more (samples first), this file holds {}",
                     to_string(images.type())));
  const Array labels = read_idx(labels_path);
  if ((labels.dtype() != DType::kUInt8 && labels.dtype() != DType::kInt32) || labels.shape().rank() != 1)
    fail(labels_path, 2,
         fmt::format("labels are uint8 or int32 with one dimension, this file holds {}",
                     to_string(labels.type())));
  if (images.shape()[0] != labels.shape()[0])
    throw DataError(fmt::format("'{}' holds {} images, but '{}' holds {} labels: they do not belong together",
                                images_path, images.shape()[0], labels_path, labels.shape()[0]));
  const int64_t pixels = images.shape()[0] == 0 ? 0 : images.elements() / images.shape()[0];
  if (options.image_shape && images.shape()[0] != 0 && options.image_shape->elements() != pixels)
    throw InvalidArgument(fmt::format(
        "idx ({}): image_shape {} has {} elements, but the images of '{}' have {}", to_string(where),
        to_string(*options.image_shape), options.image_shape->elements(), images_path, pixels));
  Array checked = checked_labels(labels, labels_path, options);
  return Dataset::from_source(std::make_shared<IdxSource>(std::move(images), std::move(checked), options),
                              where);
}

Dataset mnist(const std::string& directory, std::string_view split, IdxOptions options,
              SourceLocation where) {
  if (split != "train" && split != "t10k" && split != "test")
    throw InvalidArgument(
        fmt::format("mnist ({}): split '{}' is unknown; expected 'train' or 't10k' (or 'test', which "
                    "means t10k)",
                    to_string(where), split));
  const std::string prefix = split == "train" ? "train" : "t10k";
  if (!options.num_classes) options.num_classes = 10;
  const std::string images = find_file(directory, prefix + "-images", "idx3-ubyte");
  return idx(images, find_file(directory, prefix + "-labels", "idx1-ubyte"), std::move(options), where);
}

}  // namespace mox::data
