#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>

#include "moxing/formats/internal/decoded_images.h"
#include "moxing/formats/tfrecord.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox::data::internal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTitle = "decoded images of moxing, version 1";

struct Entry {
  uint64_t offset = 0;
  int width = 0, height = 0;
  uint32_t label_bytes = 0, checksum = 0;  // over label and pixels
  uint64_t pixel_bytes() const {
    return uint64_t{image::kPixelBytes} * static_cast<uint64_t>(width) * static_cast<uint64_t>(height);
  }
  uint64_t end() const { return offset + label_bytes + pixel_bytes(); }
};

uint32_t checksum_of(std::span<const std::byte> label, const image::Bitmap& pixels) {
  return crc32c(std::as_bytes(std::span(pixels.pixels)), crc32c(label));
}

// True if all bytes are there.
bool read_at(int file, uint64_t offset, void* out, size_t bytes) {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(file, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool write_at(int file, uint64_t offset, const void* data, size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::pwrite(file, from, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    from += done;
    offset += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
  return true;
}

class DecodedInDirectory : public DecodedImages {
 public:
  DecodedInDirectory(int64_t images, const DecodedDirectory& options)
      : options_(options), entries_(static_cast<size_t>(images)) {
    make_directories(options_.directory);
    file_ = ::open(path("images.bin").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0)
      throw IoError(fmt::format("cannot open '{}': {}", path("images.bin"), std::strerror(errno)));
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      ::close(file_);
      throw FailedPrecondition(fmt::format(
          "the cache '{}' is in use by another process; give each process a cache directory of its own",
          options_.directory));
    }
    load_manifest();
    // What an interrupted run wrote behind the images that the manifest lists is of no use.
    if (::ftruncate(file_, static_cast<off_t>(end_)) != 0) stop_keeping("cut");
  }

  ~DecodedInDirectory() override {
    if (options_.remove_on_finish) {
      std::error_code ignored;  // somebody else may have removed them already
      fs::remove(path("manifest.txt"), ignored);
      fs::remove(path("images.bin"), ignored);
      fs::remove(options_.directory, ignored);  // if nothing else is in it
    } else if (changed_) {
      save_manifest();
    }
    ::close(file_);
  }

  const image::Bitmap* find(int64_t index, image::Bitmap* scratch, std::span<std::byte> label) override {
    Entry entry;
    {
      const std::lock_guard lock(mutex_);
      if (!entries_[static_cast<size_t>(index)]) return nullptr;
      entry = *entries_[static_cast<size_t>(index)];
    }
    scratch->width = entry.width;
    scratch->height = entry.height;
    scratch->pixels.resize(entry.pixel_bytes());
    if (entry.label_bytes == label.size() && read_at(file_, entry.offset, label.data(), label.size()) &&
        read_at(file_, entry.offset + entry.label_bytes, scratch->pixels.data(), scratch->pixels.size()) &&
        checksum_of(label, *scratch) == entry.checksum)
      return scratch;
    log_warning(fmt::format("'{}', offset {}: image {} of the cache is damaged and is decoded again",
                            path("images.bin"), entry.offset, index));
    const std::lock_guard lock(mutex_);
    entries_[static_cast<size_t>(index)].reset();
    changed_ = true;
    return nullptr;
  }

  bool has_room(int, int) override {
    const std::lock_guard lock(mutex_);
    return keeping_;
  }

  void keep(int64_t index, const image::Bitmap& pixels, std::span<const std::byte> label) override {
    Entry entry{0, pixels.width, pixels.height, static_cast<uint32_t>(label.size()),
                checksum_of(label, pixels)};
    {
      const std::lock_guard lock(mutex_);
      if (!keeping_ || entries_[static_cast<size_t>(index)]) return;
      entry.offset = end_;
      end_ = entry.end();
    }
    const bool written =
        write_at(file_, entry.offset, label.data(), label.size()) &&
        write_at(file_, entry.offset + label.size(), pixels.pixels.data(), pixels.pixels.size());
    const std::lock_guard lock(mutex_);
    if (!written) return stop_keeping("write to");
    entries_[static_cast<size_t>(index)] = entry;
    changed_ = true;
  }

 private:
  std::string path(const char* name) const { return (fs::path(options_.directory) / name).string(); }

  void stop_keeping(const char* what) {
    if (keeping_)
      log_warning(
          fmt::format("cannot {} '{}': {}; images that are not in the cache are decoded in every pass", what,
                      path("images.bin"), std::strerror(errno)));
    keeping_ = false;
  }

  // Lines: the title, the identity, an entry each ("index offset width height label_bytes checksum"), "checksum" over all
  // that is above.
  void save_manifest() {
    std::string text = fmt::format("{}\n{}\n", kTitle, options_.identity);
    for (size_t i = 0; i < entries_.size(); ++i)
      if (const auto& entry = entries_[i])
        text += fmt::format("{} {} {} {} {} {}\n", i, entry->offset, entry->width, entry->height,
                            entry->label_bytes, entry->checksum);
    text += fmt::format("checksum {}\n", crc32c(std::as_bytes(std::span(text.data(), text.size()))));
    try {
      if (::fsync(file_) != 0) throw IoError(std::strerror(errno));
      write_file_atomically(path("manifest.txt"), text);
    } catch (const Error& error) {
      log_warning(fmt::format("the cache '{}' cannot be completed and will be made anew: {}",
                              options_.directory, error.what()));
    }
  }

  void load_manifest() {
    const std::string name = path("manifest.txt");
    if (!fs::exists(name)) return;
    const std::string text = read_file(name);
    const size_t last = text.rfind("checksum ");
    const std::string body = text.substr(0, last == std::string::npos ? 0 : last);
    const std::string expected =
        fmt::format("checksum {}\n", crc32c(std::as_bytes(std::span(body.data(), body.size()))));
    if (last == std::string::npos || text.substr(last) != expected) {
      log_warning(fmt::format("'{}' is damaged: the cache is made anew", name));
      return;
    }
    std::istringstream lines(body);
    std::string title, identity;
    std::getline(lines, title);
    std::getline(lines, identity);
    if (title != kTitle || identity != options_.identity) {
      log_warning(fmt::format("the cache '{}' belongs to other images ({}; these are {}): it is made anew",
                              options_.directory, identity, options_.identity));
      return;
    }
    size_t index = 0;
    for (Entry entry; lines >> index >> entry.offset >> entry.width >> entry.height >> entry.label_bytes >>
                      entry.checksum;) {
      entries_.at(index) = entry;  // the checksum and the identity vouch for the number
      end_ = std::max(end_, entry.end());
    }
  }

  const DecodedDirectory options_;
  int file_ = -1;
  std::mutex mutex_;
  std::vector<std::optional<Entry>> entries_;
  uint64_t end_ = 0;  // of the part of the file that is in use
  bool keeping_ = true, changed_ = false;
};

}  // namespace

std::unique_ptr<DecodedImages> decoded_in_directory(int64_t images, const DecodedDirectory& options) {
  return std::make_unique<DecodedInDirectory>(images, options);
}

}  // namespace mox::data::internal
