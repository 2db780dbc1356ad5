// Decoding JPEG and PNG images, whole or in part.
//
// Accepted: JPEG (libjpeg-turbo: baseline and progressive; grey, YCbCr, RGB, and Adobe's CMYK and YCCK, which
// become RGB as r = c * k / 255 of the inverted inks) and PNG (libpng: all types; 16 bits are cut to 8,
// palettes expanded, an alpha channel is dropped). Grey becomes red = green = blue. EXIF's orientation is
// honoured: sizes and boxes are those of the upright image.
//
// A DataError refuses an image that is cut off, that claims more pixels than the limits or than its bytes can
// hold (before anything is allocated), or whose decoded part has a fault; and a JPEG of several scans whose
// coefficients would take more than its decoded size and 16 MiB, if it has more than 2^26 pixels or less than
// a bit for eight of them. Damage in rows that are not decoded is not seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "moxing/image/bitmap.h"
#include "runtime/base/function_ref.h"

namespace mox::image {

struct DecodeLimits {
  // Width times height at most. A file of a few bytes can claim 65535 x 65535 pixels.
  int64_t pixels = int64_t{1} << 27;
};

// What a decoder gives its rows to: row `y` of the box, as many pixels as the box is wide. Valid
// during the call.
using RowSink = FunctionRef<void(int y, const uint8_t* pixels)>;

// Decodes one image after another; keeps the library's tables and buffers between them. Used by one thread.
class Decoder {
 public:
  explicit Decoder(DecodeLimits limits = {});
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Reads the header. `content` must outlive the decoding; `name` stands for it in
  // messages. Throws DataError.
  void open(std::span<const std::byte> content, const std::string& name);

  int width() const;   // upright
  int height() const;  // upright

  // A JPEG can be decoded at a reduced scale, 1 / `denominator` (1, 2, 4 or 8), for much less work, by a
  // discrete cosine transform of fewer points. Sizes and boxes are the reduced image's from then on. Other
  // formats stay as they are. Returns the denominator in force.
  int reduce(int denominator);

  // Decodes the pixels of `box` (not empty, inside the image) and hands over its rows from top to bottom. The
  // pixels are bit for bit those of a full decoding; a JPEG's rows below and columns beside the box are not
  // computed. Ends the image: `open` comes next. Throws DataError.
  void decode(const Box& box, RowSink sink);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// A whole image.
Bitmap decode(std::span<const std::byte> content, const std::string& name, DecodeLimits limits = {});

// JPEG and PNG by their first bytes.
bool is_image(std::span<const std::byte> content);

}  // namespace mox::image
