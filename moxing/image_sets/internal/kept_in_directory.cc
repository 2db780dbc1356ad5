#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "moxing/formats/tfrecord.h"
#include "moxing/image_sets/internal/kept_images.h"
#include "moxing/image_sets/internal/kept_manifest.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/opened_file.h"

namespace mox::data::internal {
namespace {

namespace fs = std::filesystem;

// More processes than this do not share one directory.
constexpr int kMostCopies = 4096;

uint32_t checksum_of(std::span<const std::byte> label, std::span<const uint8_t> image) {
  return crc32c(std::as_bytes(image), crc32c(label));
}

// True if all bytes are there.
bool read_at(int file, uint64_t offset, void* out, size_t bytes) {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(file, to, bytes, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    offset += got;
    bytes -= got;
  }
  return true;
}

bool write_at(int file, uint64_t offset, const void* data, size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::pwrite(file, from, bytes, offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    from += done;
    offset += done;
    bytes -= done;
  }
  return true;
}

class KeptInDirectory : public KeptImages {
 public:
  KeptInDirectory(int64_t images, const KeptDirectory& options)
      : options_(options), entries_(images), verified_(entries_.size()) {
    take_a_free_copy();
    load_manifest();
    // What an interrupted run wrote behind the images that the manifest lists is of no use.
    if (::ftruncate(file_, end_) != 0) stop_keeping("cut");
  }

  ~KeptInDirectory() override {
    if (options_.remove_on_finish) {
      std::error_code ignored;  // somebody else may have removed them already
      fs::remove(inside("manifest.txt"), ignored);
      fs::remove(inside("images.bin"), ignored);
      fs::remove(copy_, ignored);
      fs::remove(options_.directory, ignored);  // if nothing else is in it
    } else if (changed_) {
      save_manifest();
    }
    ::close(file_);
  }

  std::optional<FoundImage> find(int64_t index, NeededPixels needed, std::vector<uint8_t>* scratch,
                                 std::span<std::byte> label) override {
    Place place;
    {
      const std::lock_guard lock(mutex_);
      if (!entries_[index]) return std::nullopt;
      place = {*entries_[index], verified_[index]};
    }
    const KeptEntry& entry = place.entry;
    FoundImage found;
    found.pixels = {entry.width, entry.height, 0, entry.height, nullptr};
    uint64_t skipped = 0, bytes = entry.bytes;
    if (place.verified && found.is_decoded()) {
      const image::Box box = needed(entry.width, entry.height);
      found.pixels.first_row = box.y;
      found.pixels.rows = box.height;
      const auto stride = uint64_t{image::kPlanes} * entry.width;
      skipped = stride * box.y;
      bytes = stride * box.height;
    }
    if (scratch->size() < bytes + image::kRowSlackBytes) scratch->resize(bytes + image::kRowSlackBytes);
    found.pixels.pixels = scratch->data();
    const std::span<const uint8_t> content(scratch->data(), bytes);
    if (!found.is_decoded()) found.encoded = content;
    if (entry.label_bytes == label.size() && read_at(file_, entry.offset, label.data(), label.size()) &&
        read_at(file_, entry.offset + entry.label_bytes + skipped, scratch->data(), bytes) &&
        (place.verified || checksum_of(label, content) == entry.checksum)) {
      if (!place.verified) mark_as_verified(index, entry);
      return found;
    }
    log_warning(fmt::format("'{}', offset {}: image {} of the cache is damaged and is made again",
                            path("images.bin"), entry.offset, index));
    const std::lock_guard lock(mutex_);
    entries_[index].reset();
    changed_ = true;
    if (place.verified) distrust();
    return std::nullopt;
  }

  bool keeps(int64_t index) override {
    const std::lock_guard lock(mutex_);
    return entries_[index].has_value();
  }

  bool has_room(uint64_t) override {
    const std::lock_guard lock(mutex_);
    return keeping_;
  }

  void keep(int64_t index, const KeptImage& image, std::span<const std::byte> label) override {
    const std::span<const uint8_t> bytes = image.bytes();
    KeptEntry entry{.offset = 0,
                    .bytes = bytes.size(),
                    .width = image.pixels.width,
                    .height = image.pixels.height,
                    .label_bytes = static_cast<uint32_t>(label.size()),
                    .checksum = checksum_of(label, bytes)};
    {
      const std::lock_guard lock(mutex_);
      if (!keeping_ || entries_[index]) return;
      entry.offset = end_;
      end_ = entry.end();
    }
    const bool written = write_at(file_, entry.offset, label.data(), label.size()) &&
                         write_at(file_, entry.offset + label.size(), bytes.data(), bytes.size());
    const std::lock_guard lock(mutex_);
    if (!written) return stop_keeping("write to");
    entries_[index] = entry;
    verified_[index] = true;
    changed_ = true;
  }

 private:
  struct Place {
    KeptEntry entry;
    bool verified = false;
  };

  // What was right when it was read first is no longer there: somebody has cut the file. Nothing more is
  // written to it, for behind its end that would leave a gap of zeros, which later reads could not
  // tell from images.
  void distrust() {
    if (keeping_)
      log_warning(
          fmt::format("'{}' has been cut by somebody else; nothing more is kept in it", path("images.bin")));
    keeping_ = false;
    verified_.assign(verified_.size(), false);
  }

  void mark_as_verified(int64_t index, const KeptEntry& entry) {
    const std::lock_guard lock(mutex_);
    const auto& now = entries_[index];
    if (now && now->offset == entry.offset) verified_[index] = true;
  }

  std::string path(const char* name) const { return (fs::path(copy_) / name).string(); }  // for messages
  std::string inside(const char* name) const { return held_->file(name); }

  // The first copy that no other process (or data set of this one) uses: it stays locked as long as the file
  // is open.
  void take_a_free_copy() {
    for (int number = 1; number <= kMostCopies; ++number) {
      copy_ = (fs::path(options_.directory) / fmt::format("copy-{}", number)).string();
      make_directories(copy_);
      held_.emplace(copy_);
      try {
        // The owner's alone: whoever may read it could hold its lock.
        file_ = open_kept_file(inside("images.bin"), 0600).release();
        [[maybe_unused]] const int changed = ::fchmod(file_, 0600);  // one of an earlier version
      } catch (const IoError& error) {
        held_->throw_named(error);
      }
      if (::flock(file_, LOCK_EX | LOCK_NB) == 0) {
        if (number > 1)
          log_info(fmt::format("the cache '{}' is in use; this process keeps a copy of its own, '{}'",
                               options_.directory, copy_));
        return;
      }
      const int reason = errno;
      ::close(file_);
      if (reason != EWOULDBLOCK && reason != EINTR)
        throw IoError(fmt::format("cannot lock '{}': {}", path("images.bin"), std::strerror(reason)));
    }
    throw FailedPrecondition(
        fmt::format("all {} copies of the cache '{}' are in use", kMostCopies, options_.directory));
  }

  void stop_keeping(const char* what) {
    if (keeping_)
      log_warning(
          fmt::format("cannot {} '{}': {}; images that are not in the cache are made again in every pass",
                      what, path("images.bin"), std::strerror(errno)));
    keeping_ = false;
  }

  void save_manifest() {
    try {
      if (::fsync(file_) != 0) throw IoError(std::strerror(errno));
      write_file_atomically(inside("manifest.txt"), manifest_text(options_.identity, entries_));
    } catch (const Error& error) {
      log_warning(fmt::format("the cache '{}' cannot be completed and will be made anew: {}", copy_,
                              held_->named(error.what())));
    }
  }

  void load_manifest() {
    const std::string name = inside("manifest.txt");
    if (!is_there(name)) return;
    struct stat status {};
    if (::fstat(file_, &status) != 0)
      throw IoError(fmt::format("cannot look at '{}': {}", path("images.bin"), std::strerror(errno)));
    std::string problem;
    entries_ = parse_manifest(read_file(name), options_.identity, entries_.size(), status.st_size, &problem);
    if (!problem.empty()) log_warning(fmt::format("the cache '{}' is made anew: {}", copy_, problem));
    for (const auto& entry : entries_)
      if (entry) end_ = std::max(end_, entry->end());
  }

  const KeptDirectory options_;
  std::string copy_;
  std::optional<HeldDirectory> held_;
  int file_ = -1;
  std::mutex mutex_;
  KeptEntries entries_;
  std::vector<bool> verified_;  // entries whose checksum has been found right, or that were written here
  uint64_t end_ = 0;            // of the part of the file that is in use
  bool keeping_ = true, changed_ = false;
};

}  // namespace

std::unique_ptr<KeptImages> kept_in_directory(int64_t images, const KeptDirectory& options) {
  return std::make_unique<KeptInDirectory>(images, options);
}

}  // namespace mox::data::internal
