// Images that are kept, in memory or in a directory, so that later passes need not read or decode them again.
//
// Pixels are kept as PlanarBitmap has them: any rows are one piece.
//
// A directory holds a numbered copy for each process that uses it at the same time: copy-1, copy-2 and so on.
// A copy is images.bin, the labels and images one after another, and manifest.txt (kept_manifest.h), which is
// written last: a copy without a manifest, with one that is damaged, or with one of other images (identity)
// or another version is made anew. Every image has a CRC-32C. It is verified when a KeptImages that did not
// write the image itself reads it for the first time; later reads trust the file, which is locked, and fetch
// no more than the rows they need. An image that fails is made again. So is one whose file has been cut
// meanwhile; then nothing more is kept in it, and all images are verified again. A cache is a help and no
// more: where it cannot be written, that is said once and the run goes on without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "moxing/image/planar_bitmap.h"
#include "runtime/base/function_ref.h"
#include "runtime/data/memory_budget.h"

namespace mox::data::internal {

// An image that is to be kept: pixels, or the bytes of an encoded image (then the bitmap is empty).
struct KeptImage {
  image::PlanarBitmap pixels;
  std::vector<uint8_t> encoded;

  std::span<const uint8_t> bytes() const {
    return pixels.width > 0 ? pixels.content() : std::span<const uint8_t>(encoded);
  }
};

// An image that was kept: rows of pixels, or the bytes of an encoded image (then the view is empty).
struct FoundImage {
  image::PlanarView pixels;
  std::span<const uint8_t> encoded;

  bool is_decoded() const { return pixels.width > 0; }
};

// Which part of an image of some size is needed.
using NeededPixels = FunctionRef<image::Box(int width, int height)>;

class KeptImages {
 public:
  virtual ~KeptImages() = default;

  // Image `index`, and its label in `label`, if it is kept; of pixels, all rows of `needed` at least. It
  // lives in `scratch`, which the caller keeps unchanged while it uses it, or in the cache. Safe
  // from any thread.
  virtual std::optional<FoundImage> find(int64_t index, NeededPixels needed, std::vector<uint8_t>* scratch,
                                         std::span<std::byte> label) = 0;

  // Whether `find` would most likely find it.
  virtual bool keeps(int64_t index) = 0;

  // Whether `keep` would take an image of so many bytes.
  virtual bool has_room(uint64_t bytes) = 0;
  virtual void keep(int64_t index, const KeptImage& image, std::span<const std::byte> label) = 0;
};

// At most `limit_bytes` (ImageOptions::cache_bytes), what `budget`, where there is one, gives to a cache that
// need not hold all, and what the system gives. What does not fit is not kept, which is said once, with what
// it has, what bounds it and the option that raises that.
std::unique_ptr<KeptImages> kept_in_memory(int64_t images, uint64_t limit_bytes,
                                           std::shared_ptr<MemoryBudget> budget = nullptr);

struct KeptDirectory {
  std::string directory;  // made if it does not exist
  std::string identity;   // of the images: what else it must be made for to be taken over
  bool remove_on_finish = false;
};
// Throws IoError for a directory that cannot be made.
std::unique_ptr<KeptImages> kept_in_directory(int64_t images, const KeptDirectory& options);

}  // namespace mox::data::internal
