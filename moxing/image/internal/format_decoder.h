// What Decoder asks of a file format. Sizes and boxes are those of the stored image, before its orientation.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "moxing/image/decode.h"

namespace mox::image::internal {

class FormatDecoder {
 public:
  virtual ~FormatDecoder() = default;
  virtual void open(std::span<const std::byte> content, const std::string& name,
                    const DecodeLimits& limits) = 0;
  virtual int width() const = 0;
  virtual int height() const = 0;
  virtual int orientation() const = 0;  // EXIF's, 1 to 8
  virtual int reduce(int denominator) = 0;
  virtual void decode(const Box& box, RowSink sink) = 0;
};

std::unique_ptr<FormatDecoder> make_jpeg_decoder();
std::unique_ptr<FormatDecoder> make_png_decoder();

bool is_jpeg(std::span<const std::byte> content);
bool is_png(std::span<const std::byte> content);

// Throws DataError for a size that is empty or above the limits.
void require_size(int64_t width, int64_t height, const DecodeLimits& limits, const std::string& name);

// The orientation in an EXIF block that starts with its TIFF header; 1 if there is none that makes sense.
int exif_orientation(std::span<const std::byte> tiff);

}  // namespace mox::image::internal
