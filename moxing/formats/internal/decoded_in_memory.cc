#include <algorithm>

#include "moxing/formats/internal/decoded_images.h"

namespace mox::data::internal {
namespace {

class DecodedInMemory : public DecodedImages {
 public:
  DecodedInMemory(int64_t images, uint64_t limit_bytes)
      : limit_(limit_bytes), entries_(static_cast<size_t>(images)) {}

  const image::Bitmap* find(int64_t index, image::Bitmap*, std::span<std::byte> label) override {
    const std::lock_guard lock(mutex_);
    const Entry* entry = entries_[static_cast<size_t>(index)].get();
    if (!entry) return nullptr;
    std::copy(entry->label.begin(), entry->label.end(), label.begin());
    return &entry->pixels;  // entries stay until the end
  }

  bool has_room(int width, int height) override {
    const std::lock_guard lock(mutex_);
    return used_ +
               uint64_t{image::kPixelBytes} * static_cast<uint64_t>(width) * static_cast<uint64_t>(height) <=
           limit_;
  }

  void keep(int64_t index, const image::Bitmap& pixels, std::span<const std::byte> label) override {
    auto entry = std::make_unique<Entry>(Entry{pixels, {label.begin(), label.end()}});
    const std::lock_guard lock(mutex_);
    auto& place = entries_[static_cast<size_t>(index)];
    if (place || used_ + pixels.pixels.size() > limit_) return;
    used_ += pixels.pixels.size();
    place = std::move(entry);
  }

 private:
  struct Entry {
    image::Bitmap pixels;
    std::vector<std::byte> label;
  };
  const uint64_t limit_;
  std::mutex mutex_;
  uint64_t used_ = 0;
  std::vector<std::unique_ptr<const Entry>> entries_;
};

}  // namespace

std::unique_ptr<DecodedImages> decoded_in_memory(int64_t images, uint64_t limit_bytes) {
  return std::make_unique<DecodedInMemory>(images, limit_bytes);
}

}  // namespace mox::data::internal
