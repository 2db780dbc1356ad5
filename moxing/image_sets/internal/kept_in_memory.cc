#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "moxing/image_sets/internal/kept_images.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/tensor/array.h"

namespace mox::data::internal {
namespace {

// Images lie side by side in blocks of this size, which consist of huge pages: the rows of an image otherwise
// lie in a hundred pages, and finding those took a quarter of the time of a sample.
constexpr uint64_t kBlockBytes = uint64_t{64} << 20;
constexpr uint64_t kLineBytes = 64;

class KeptInMemory : public KeptImages {
 public:
  KeptInMemory(int64_t images, uint64_t limit_bytes, std::shared_ptr<MemoryBudget> budget)
      : limit_(limit_bytes), budget_(std::move(budget)), entries_(images) {
    if (budget_) share_.emplace(budget_, MemoryBudget::Share::Of::kCache);
  }

  std::optional<FoundImage> find(int64_t index, NeededPixels, std::vector<uint8_t>*,
                                 std::span<std::byte> label) override {
    const std::lock_guard lock(mutex_);
    const Entry& entry = entries_[index];
    if (entry.state != State::kThere) return std::nullopt;
    std::copy(entry.label.begin(), entry.label.end(), label.begin());
    return entry.image;  // stays until the end
  }

  bool keeps(int64_t index) override {
    const std::lock_guard lock(mutex_);
    return entries_[index].state == State::kThere;
  }

  bool has_room(uint64_t bytes) override {
    const std::lock_guard lock(mutex_);
    return fits(bytes);
  }

  void keep(int64_t index, const KeptImage& image, std::span<const std::byte> label) override {
    const std::span<const uint8_t> bytes = image.bytes();
    Entry& entry = entries_[index];
    uint8_t* memory = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (entry.state != State::kAbsent || !fits(bytes.size())) return;
      try {
        memory = take(bytes.size());
        if (!memory) return say_full(over_budget());  // another cache has been quicker
      } catch (const OutOfMemory& error) {
        limit_ = used_;  // a cache is a help: the run goes on with what there is
        say_full(error.what());
        return;
      }
      used_ += bytes.size();
      ++kept_;
      entry.state = State::kComing;
    }
    std::copy(bytes.begin(), bytes.end(), memory);
    std::memset(memory + bytes.size(), 0, image::kRowSlackBytes);
    const std::lock_guard lock(mutex_);
    if (image.pixels.width > 0)
      entry.image.pixels = {image.pixels.width, image.pixels.height, 0, image.pixels.height, memory};
    else
      entry.image.encoded = {memory, bytes.size()};
    entry.label.assign(label.begin(), label.end());
    entry.state = State::kThere;
  }

 private:
  enum class State { kAbsent, kComing, kThere };
  struct Entry {
    State state = State::kAbsent;
    FoundImage image;
    std::vector<std::byte> label;
  };

  bool fits(uint64_t bytes) {
    if (bytes > limit_ - used_) {
      say_full(fmt::format(
          "it may have {} bytes (cache_bytes, for the image classifier data.cache_gigabytes)", limit_));
      return false;
    }
    if (!budget_ || in_lines(bytes) <= left_ || in_lines(bytes) <= budget_->room_to_grow()) return true;
    say_full(over_budget());
    return false;
  }
  std::string over_budget() const {
    return fmt::format(
        "it has {} bytes, and the memory budget of data pipelines, with all that they hold, is {}, of which a "
        "quarter stays free of images; {} raises it",
        share_->bytes(), budget_->describe(), budget_->option());
  }
  void say_full(const std::string& why) {
    if (std::exchange(is_said_, true)) return;
    log_info(
        fmt::format("the cache of images in memory is full: {}. It keeps {} of {} images, and the others "
                    "are made anew in every pass",
                    why, kept_, entries_.size()));
  }

  static uint64_t in_lines(uint64_t bytes) {
    return (bytes + image::kRowSlackBytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }

  // So many bytes, and kRowSlackBytes behind them; null where the budget does not give them.
  uint8_t* take(uint64_t bytes) {
    const uint64_t all = in_lines(bytes);
    if (all > left_) {
      uint64_t block = std::min(kBlockBytes, limit_ - used_);
      if (budget_) block = std::min<uint64_t>(block, budget_->room_to_grow());
      block = std::max(all, block);
      if (share_ && !share_->try_to_grow(block)) return nullptr;
      blocks_.push_back(allocated(block));
      left_ = block;
      next_ = reinterpret_cast<uint8_t*>(blocks_.back().get());
    }
    left_ -= all;
    return std::exchange(next_, next_ + all);
  }

  // What the system refuses is not counted.
  std::shared_ptr<std::byte> allocated(uint64_t block) {
    try {
      return allocate_aligned(block, "a part of the cache of images");
    } catch (const OutOfMemory&) {
      if (share_) share_->resize(share_->bytes() - block);
      throw;
    }
  }

  std::mutex mutex_;
  uint64_t limit_;
  const std::shared_ptr<MemoryBudget> budget_;
  std::optional<MemoryBudget::Share> share_;  // of the budget
  uint64_t used_ = 0;                         // by images
  int64_t kept_ = 0;
  bool is_said_ = false;
  std::vector<std::shared_ptr<std::byte>> blocks_;
  uint8_t* next_ = nullptr;  // in the last block
  uint64_t left_ = 0;        // behind it
  std::vector<Entry> entries_;
};

}  // namespace

std::unique_ptr<KeptImages> kept_in_memory(int64_t images, uint64_t limit_bytes,
                                           std::shared_ptr<MemoryBudget> budget) {
  return std::make_unique<KeptInMemory>(images, limit_bytes, std::move(budget));
}

}  // namespace mox::data::internal
