// Decoded images that are kept, in memory or in a directory, so that later passes need not decode them again.
//
// A directory holds images.bin, the pixels and labels one after another, and manifest.txt, which is written last: a cache
// without a manifest, with one that is damaged, or with one of other images (identity) is made anew. Every image has a
// CRC-32C, verified whenever it is read; one that fails is decoded again. A cache is a help and no more: where it cannot be
// written, that is said once and the run goes on without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "moxing/image/bitmap.h"

namespace mox::data::internal {

class DecodedImages {
 public:
  virtual ~DecodedImages() = default;

  // The pixels of image `index`, and its label in `label`, if it is kept; else null. They live in `scratch`, which the
  // caller keeps unchanged while it uses them, or in the cache. Safe from any thread.
  virtual const image::Bitmap* find(int64_t index, image::Bitmap* scratch, std::span<std::byte> label) = 0;

  // Whether `keep` would take an image of this size.
  virtual bool has_room(int width, int height) = 0;
  virtual void keep(int64_t index, const image::Bitmap& pixels, std::span<const std::byte> label) = 0;
};

// At most `limit_bytes`; what does not fit is not kept.
std::unique_ptr<DecodedImages> decoded_in_memory(int64_t images, uint64_t limit_bytes);

struct DecodedDirectory {
  std::string directory;  // made if it does not exist; used by one process at a time
  std::string identity;   // of the images: what else it must be made for to be taken over
  bool remove_on_finish = false;
};
// Throws IoError for a directory that cannot be made, FailedPrecondition for one that another process uses.
std::unique_ptr<DecodedImages> decoded_in_directory(int64_t images, const DecodedDirectory& options);

}  // namespace mox::data::internal
