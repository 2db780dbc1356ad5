#include "moxing/image/decode.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "moxing/image/internal/format_decoder.h"
#include "runtime/base/error.h"

namespace mox::image {
namespace {

using internal::FormatDecoder;

// EXIF's orientations as steps from an upright image to the stored one: swap the axes, then mirror them.
struct Orientation {
  bool swap, mirror_x, mirror_y;  // mirrors are of the stored axes
};

Orientation steps(int orientation) {
  switch (orientation) {
    case 2:
      return {false, true, false};
    case 3:
      return {false, true, true};
    case 4:
      return {false, false, true};
    case 5:
      return {true, false, false};
    case 6:
      return {true, false, true};
    case 7:
      return {true, true, true};
    case 8:
      return {true, true, false};
    default:
      return {false, false, false};
  }
}

Box stored_box(Box box, const Orientation& turn, int stored_width, int stored_height) {
  if (turn.swap) {
    std::swap(box.x, box.y);
    std::swap(box.width, box.height);
  }
  if (turn.mirror_x) box.x = stored_width - box.x - box.width;
  if (turn.mirror_y) box.y = stored_height - box.y - box.height;
  return box;
}

}  // namespace

namespace internal {

void require_size(int64_t width, int64_t height, const DecodeLimits& limits, const std::string& name) {
  if (width < 1 || height < 1)
    throw DataError(fmt::format("'{}': the image is empty: {} x {} pixels", name, width, height));
  if (width > limits.pixels / height)
    throw DataError(fmt::format("'{}': the image claims {} x {} pixels, more than the limit of {}", name,
                                width, height, limits.pixels));
}

std::string other_kind(std::span<const std::byte> content) {
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  const auto at = [&](size_t offset, std::string_view magic) {
    return text.size() >= offset && text.substr(offset).starts_with(magic);
  };
  std::string_view kind;
  if (at(0, "RIFF") && at(8, "WEBP"))
    kind = "WebP";
  else if (at(0, "BM"))
    kind = "BMP";
  else if (at(0, "GIF8"))
    kind = "GIF";
  else if (at(0, "II*") || at(0, std::string_view("MM\0*", 4)))
    kind = "TIFF";
  else if (at(4, "ftypavif"))
    kind = "AVIF";
  else if (at(4, "ftyphei") || at(4, "ftypmif1") || at(4, "ftyphevc"))
    kind = "HEIC";
  else if (at(4, "jP  ") || at(0, "\xff\x4f\xff\x51"))
    kind = "JPEG 2000";
  else if (at(0, "<!DOCTYPE") || at(0, "<html"))
    kind = "a page of HTML";
  if (kind.empty()) return "";
  return fmt::format(
      ": it is {}; convert it, for example with ImageMagick: mogrify -auto-orient -format png FILE", kind);
}

}  // namespace internal

class Decoder::Implementation {
 public:
  explicit Implementation(DecodeLimits limits) : limits_(limits) {}

  void open(std::span<const std::byte> content, const std::string& name) {
    format_ = &format_of(content, name);
    format_->open(content, name, limits_);
    turn_ = steps(format_->orientation());
  }

  int width() const { return turn_.swap ? format().height() : format().width(); }
  int height() const { return turn_.swap ? format().width() : format().height(); }

  int reduce(int denominator) {
    MOX_ASSERT(denominator == 1 || denominator == 2 || denominator == 4 || denominator == 8,
               "an image is reduced by 1, 2, 4 or 8");
    return format().reduce(denominator);
  }

  void decode(const Box& box, RowSink sink) {
    MOX_ASSERT(box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0 && box.x + box.width <= width() &&
                   box.y + box.height <= height(),
               "the box is inside the image");
    FormatDecoder& format = *std::exchange(format_, nullptr);
    if (!turn_.swap && !turn_.mirror_x && !turn_.mirror_y) {
      format.decode(box, sink);
      return;
    }
    const Box stored = stored_box(box, turn_, format.width(), format.height());
    stored_ = Bitmap(stored.width, stored.height);
    format.decode(stored, [this](int y, const uint8_t* pixels) {
      std::memcpy(stored_.row(y), pixels, stored_.stride());
    });
    row_.resize(static_cast<size_t>(box.width) * kPixelBytes);
    for (int y = 0; y < box.height; ++y) {
      uint8_t* to = row_.data();
      for (int x = 0; x < box.width; ++x, to += kPixelBytes) {
        int from_x = turn_.swap ? y : x, from_y = turn_.swap ? x : y;
        if (turn_.mirror_x) from_x = stored.width - 1 - from_x;
        if (turn_.mirror_y) from_y = stored.height - 1 - from_y;
        std::memcpy(to, stored_.row(from_y) + int64_t{kPixelBytes} * from_x, kPixelBytes);
      }
      sink(y, row_.data());
    }
  }

 private:
  FormatDecoder& format() const {
    MOX_ASSERT(format_, "an image is open");
    return *format_;
  }

  FormatDecoder& format_of(std::span<const std::byte> content, const std::string& name) {
    if (internal::is_jpeg(content)) {
      if (!jpeg_) jpeg_ = internal::make_jpeg_decoder();
      return *jpeg_;
    }
    if (internal::is_png(content)) {
      if (!png_) png_ = internal::make_png_decoder();
      return *png_;
    }
    throw DataError(content.empty()
                        ? fmt::format("'{}': the image is empty: 0 bytes", name)
                        : fmt::format("'{}': these {} bytes are no JPEG or PNG image, whatever its name "
                                      "says{}",
                                      name, content.size(), internal::other_kind(content)));
  }

  DecodeLimits limits_;
  std::unique_ptr<FormatDecoder> jpeg_, png_;
  FormatDecoder* format_ = nullptr;
  Orientation turn_{};
  Bitmap stored_;
  std::vector<uint8_t> row_;
};

Decoder::Decoder(DecodeLimits limits) : implementation_(std::make_unique<Implementation>(limits)) {}
Decoder::~Decoder() = default;
void Decoder::open(std::span<const std::byte> content, const std::string& name) {
  implementation_->open(content, name);
}
int Decoder::width() const { return implementation_->width(); }
int Decoder::height() const { return implementation_->height(); }
int Decoder::reduce(int denominator) { return implementation_->reduce(denominator); }
void Decoder::decode(const Box& box, RowSink sink) { implementation_->decode(box, sink); }

Bitmap decode(std::span<const std::byte> content, const std::string& name, DecodeLimits limits) {
  Decoder decoder(limits);
  decoder.open(content, name);
  Bitmap bitmap(decoder.width(), decoder.height());
  decoder.decode({0, 0, bitmap.width, bitmap.height},
                 [&](int y, const uint8_t* pixels) { std::memcpy(bitmap.row(y), pixels, bitmap.stride()); });
  return bitmap;
}

bool is_image(std::span<const std::byte> content) {
  return internal::is_jpeg(content) || internal::is_png(content);
}

}  // namespace mox::image
