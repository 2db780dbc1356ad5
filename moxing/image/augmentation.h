// Augmentation: how a photograph becomes one sample of a batch, as a recipe; and ImageReader,
// which follows it.
//
// The steps, of which a recipe uses some: crop, resize (antialiased), mirror, colour jitter, normalise, cut
// out. Decoding, crop and resize are one step: only the pixels that count are decoded. All random decisions
// are functions of the SampleContext alone.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "moxing/image/bitmap.h"
#include "moxing/image/decode.h"
#include "moxing/image/planar_bitmap.h"
#include "moxing/image/resample.h"
#include "runtime/data/source.h"
#include "runtime/tensor/dtype.h"

namespace mox::image {

enum class Crop {
  kNone,    // the whole image is resized, whatever its proportions
  kCentre,  // the shorter side is resized to `resize_shorter`, the middle is cut out
  kRandom,  // the shorter side is resized to a random size in [resize_shorter, resize_shorter_max], a random
            // part is cut out (Simonyan and Zisserman, arXiv:1409.1556, 3.1)
  kRandomResized,  // a random part of random area and proportions is resized (Szegedy et al.,
                   // arXiv:1409.4842, 6)
  kPadded,  // the whole image is resized, `padding` black pixels are put around it and a random part is cut
            // out (He et al., arXiv:1512.03385, 4.2)
};

// Factors are uniform in [1 - x, 1 + x], the turn of the hue in [-x, x] of the full circle (0 to 0.5). The
// steps come in random order.
struct ColourJitter {
  float brightness = 0, contrast = 0, saturation = 0, hue = 0;
  bool any() const { return brightness > 0 || contrast > 0 || saturation > 0 || hue > 0; }
};

struct Augmentation {
  int height = 224, width = 224;
  int channels = 3;  // 3: red, green, blue; 1: grey (ITU-R BT.601 luma)

  Crop crop = Crop::kNone;
  int resize_shorter = 256, resize_shorter_max = 256;             // kCentre, kRandom
  double min_area = 0.08, max_area = 1.0;                         // kRandomResized: part of the image's area
  double min_proportion = 3.0 / 4.0, max_proportion = 4.0 / 3.0;  // kRandomResized: width / height
  int padding = 4;                                                // kPadded

  bool flip = false;  // mirrors left and right in half of the cases
  ColourJitter jitter = {};
  int cut_out = 0;  // the side of a square at a random place that is set to 0 (arXiv:1708.04552); 0: none

  // A value v, 0 to 255, becomes (v / 255 - mean) / stddev.
  std::array<float, 3> mean{0, 0, 0}, stddev{1, 1, 1};

  Filter filter = Filter::kBilinear;

  // Decodes JPEG at half, quarter or eighth scale where the result is still at least as large as what is
  // resized to. Changes the pixels: see docs/data.md for by how much.
  bool fast_decode = false;
};

// Throws InvalidArgument for a recipe that cannot be followed; `where` starts the message.
void validate(const Augmentation& augmentation, const std::string& where);

// Throws InvalidArgument for a dtype that samples cannot have: they are kFloat32 or kBFloat16.
void validate_sample_dtype(DType dtype, const std::string& where);

// The recipe in a line, for fingerprints of caches and cursors.
std::string describe(const Augmentation& augmentation);

// Makes samples. Used by one thread; keep one for each.
//
// A sample of bfloat16 is the one of float32, each number rounded once, to nearest even, as the last thing
// that happens to it. The resampler writes bfloat16 at once; with jitter, colours change in float32 first, in
// memory of the reader.
class ImageReader {
 public:
  explicit ImageReader(const Augmentation& augmentation, DecodeLimits limits = {});
  ~ImageReader();

  // From a JPEG or PNG image (see Decoder; `name` stands for it in messages) to `out`: [channels, height,
  // width]. Throws DataError.
  void read(std::span<const std::byte> encoded, const std::string& name, const SampleContext& context,
            float* out);
  void read(std::span<const std::byte> encoded, const std::string& name, const SampleContext& context,
            BFloat16* out);

  // The same from pixels; all of needed_pixels must be there.
  void read(const PlanarView& pixels, const SampleContext& context, float* out);
  void read(const PlanarView& pixels, const SampleContext& context, BFloat16* out);

  // The part of an image of this size that `read` looks at.
  Box needed_pixels(int width, int height, const SampleContext& context) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace mox::image
