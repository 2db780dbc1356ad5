// PNG through libpng. As with JPEG, errors come by longjmp.
#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string_view>
#include <vector>

#include "moxing/image/internal/format_decoder.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::image::internal {
namespace {

constexpr int kColours = 3;

// deflate packs at most 1032 bytes into one.
constexpr uint64_t kMostInflation = 1032;

constexpr uint8_t kSignature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

uint32_t big_endian(std::span<const std::byte, 4> bytes) {
  uint32_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<uint32_t>(byte);
  return value;
}

// The content of the first eXIf chunk whose checksum is right, or nothing. It may follow the pixels, where
// tools that change a file put it (ImageMagick among them) and libpng comes only once all rows are read: the
// chunks (length, type, content, checksum) are walked over here.
std::span<const std::byte> find_exif(std::span<const std::byte> content) {
  constexpr size_t kField = 4, kAroundContent = 3 * kField;
  for (auto rest = content.subspan(sizeof kSignature); rest.size() >= kAroundContent;) {
    const size_t length = big_endian(rest.first<kField>());
    if (length > rest.size() - kAroundContent) break;
    const auto typed = rest.subspan(kField, kField + length);
    const auto checksum = rest.subspan(2 * kField + length).first<kField>();
    const std::string_view type(reinterpret_cast<const char*>(typed.data()), kField);
    if (type == "IEND") break;
    if (type == "eXIf" && crc32(typed) == big_endian(checksum)) return typed.subspan(kField);
    rest = rest.subspan(kAroundContent + length);
  }
  return {};
}

class PngDecoder : public FormatDecoder {
 public:
  ~PngDecoder() override { release(); }

  void open(std::span<const std::byte> content, const std::string& name,
            const DecodeLimits& limits) override {
    release();
    name_ = name;
    content_ = content;
    taken_ = 0;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) throw std::bad_alloc();
    png_set_read_fn(png_, this, on_read);
    // Of all chunks those alone that pixels are made of: texts, which may be packed to a thousandth, would be
    // unpacked and kept.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_chunk_malloc_max(png_, 1 << 20);
    guarded([this] { png_read_info(png_, info_); });
    require_size(width(), height(), limits, name);
    if (const uint64_t raw = png_get_rowbytes(png_, info_) * uint64_t{png_get_image_height(png_, info_)};
        raw / kMostInflation > content.size())
      throw DataError(fmt::format("'{}': the header claims {} x {} pixels, which {} bytes cannot hold", name,
                                  width(), height(), content.size()));
    const std::string_view all(reinterpret_cast<const char*>(content.data()), content.size());
    if (all.rfind("IEND") == std::string_view::npos)
      throw DataError(
          fmt::format("'{}': this PNG image is cut off: {} bytes, and no end chunk", name, content.size()));
  }

  int width() const override { return png_get_image_width(png_, info_); }
  int height() const override { return png_get_image_height(png_, info_); }

  int orientation() const override { return exif_orientation(find_exif(content_)); }

  int reduce(int) override { return 1; }

  void decode(const Box& box, RowSink sink) override {
    int passes = 1;
    guarded([&] {
      png_set_expand(png_);
      png_set_strip_16(png_);
      png_set_strip_alpha(png_);
      png_set_gray_to_rgb(png_);
      passes = png_set_interlace_handling(png_);
      if (passes == 1) png_set_filler(png_, 0, PNG_FILLER_AFTER);
      png_read_update_info(png_, info_);
    });
    const size_t stride =
        static_cast<size_t>(width()) * static_cast<size_t>(passes == 1 ? kPixelBytes : kColours);
    MOX_ASSERT(png_get_rowbytes(png_, info_) == stride, "libpng gives so many bytes for each pixel");
    if (passes == 1)
      decode_rows(box, stride, sink);
    else
      decode_interlaced(box, stride, passes, sink);
  }

 private:
  void decode_rows(const Box& box, size_t stride, RowSink sink) {
    pixels_.resize(stride);
    for (int y = 0; y < box.y + box.height; ++y) {
      guarded([this] { png_read_row(png_, pixels_.data(), nullptr); });
      if (y >= box.y) sink(y - box.y, pixels_.data() + static_cast<size_t>(box.x) * kPixelBytes);
    }
  }

  // Each pass refines all rows, so that all must be kept: three bytes a pixel, and only meanwhile.
  void decode_interlaced(const Box& box, size_t stride, int passes, RowSink sink) {
    const int rows = height();
    std::vector<uint8_t> all(stride * rows);
    for (int pass = 0; pass < passes; ++pass) {
      for (int y = 0; y < rows; ++y) guarded([&] { png_read_row(png_, all.data() + stride * y, nullptr); });
    }
    pixels_.resize(static_cast<size_t>(box.width) * kPixelBytes);
    for (int y = 0; y < box.height; ++y) {
      const uint8_t* from =
          all.data() + stride * static_cast<size_t>(box.y + y) + static_cast<size_t>(box.x * kColours);
      uint8_t* to = pixels_.data();
      for (int x = 0; x < box.width; ++x, from += kColours, to += kPixelBytes) {
        std::copy_n(from, kColours, to);
        to[kColours] = 0;
      }
      sink(y, pixels_.data());
    }
  }

  static PngDecoder* self(png_structp png) { return static_cast<PngDecoder*>(png_get_error_ptr(png)); }

  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    std::strncpy(self(png)->text_, text, sizeof self(png)->text_ - 1);
    std::longjmp(self(png)->jump_, 1);
  }

  // Damage in a chunk that the pixels do not need.
  static void on_warning(png_structp, png_const_charp) {}

  static void on_read(png_structp png, png_bytep out, size_t count) {
    PngDecoder& decoder = *self(png);
    if (count > decoder.content_.size() - decoder.taken_) png_error(png, "the file is cut off");
    std::memcpy(out, decoder.content_.data() + decoder.taken_, count);
    decoder.taken_ += count;
  }

  template <typename Calls>
  void guarded(Calls&& calls) {
    if (setjmp(jump_) == 0) {  // NOLINT: how the library reports errors
      calls();
      return;
    }
    throw DataError(
        fmt::format("'{}', offset {}: this PNG image is damaged or of a kind that is not supported: {}",
                    name_, taken_, text_));
  }

  void release() {
    if (png_) png_destroy_read_struct(&png_, &info_, nullptr);
    png_ = nullptr;
    info_ = nullptr;
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_;
  char text_[256] = {};
  std::string name_;
  std::span<const std::byte> content_;
  size_t taken_ = 0;
  std::vector<uint8_t> pixels_;
};

}  // namespace

std::unique_ptr<FormatDecoder> make_png_decoder() { return std::make_unique<PngDecoder>(); }

bool is_png(std::span<const std::byte> content) {
  return content.size() >= sizeof kSignature &&
         std::memcmp(content.data(), kSignature, sizeof kSignature) == 0;
}

}  // namespace mox::image::internal
