#include <algorithm>
#include <mutex>

#include "moxing/formats/internal/kept_images.h"

namespace mox::data::internal {
namespace {

class KeptInMemory : public KeptImages {
 public:
  KeptInMemory(int64_t images, uint64_t limit_bytes)
      : limit_(limit_bytes), entries_(static_cast<size_t>(images)) {}

  const KeptImage* find(int64_t index, KeptImage*, std::span<std::byte> label) override {
    const std::lock_guard lock(mutex_);
    const Entry* entry = entries_[static_cast<size_t>(index)].get();
    if (!entry) return nullptr;
    std::copy(entry->label.begin(), entry->label.end(), label.begin());
    return &entry->image;  // entries stay until the end
  }

  bool has_room(uint64_t bytes) override {
    const std::lock_guard lock(mutex_);
    return used_ + bytes <= limit_;
  }

  void keep(int64_t index, const KeptImage& image, std::span<const std::byte> label) override {
    auto entry = std::make_unique<Entry>(Entry{image, {label.begin(), label.end()}});
    const std::lock_guard lock(mutex_);
    auto& place = entries_[static_cast<size_t>(index)];
    if (place || used_ + image.bytes().size() > limit_) return;
    used_ += image.bytes().size();
    place = std::move(entry);
  }

 private:
  struct Entry {
    KeptImage image;
    std::vector<std::byte> label;
  };
  const uint64_t limit_;
  std::mutex mutex_;
  uint64_t used_ = 0;
  std::vector<std::unique_ptr<const Entry>> entries_;
};

}  // namespace

std::unique_ptr<KeptImages> kept_in_memory(int64_t images, uint64_t limit_bytes) {
  return std::make_unique<KeptInMemory>(images, limit_bytes);
}

}  // namespace mox::data::internal
