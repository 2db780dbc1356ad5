#include "moxing/formats/internal/encoded_images.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/error.h"

namespace mox::data::internal {
namespace {

class AugmentedImages : public RandomAccessSource {
 public:
  AugmentedImages(std::shared_ptr<const EncodedImages> images, const ImageOptions& options)
      : images_(std::move(images)), options_(options) {
    if (!options_.bad_samples) options_.bad_samples = std::make_shared<BadSamples>();
    const auto& recipe = options_.augmentation;
    signature_ = {{DType::kFloat32, Shape{recipe.channels, recipe.height, recipe.width}},
                  images_->label_type()};
  }

  int64_t size() const override { return images_->size(); }
  const std::vector<TensorType>& signature() const override { return signature_; }
  void will_read(int64_t index) const override { images_->will_read(index); }
  std::string describe() const override {
    return fmt::format("{}, augmented {}", images_->describe(), image::describe(options_.augmentation));
  }

  void read(int64_t index, const SampleContext& context,
            std::span<std::byte* const> components) const override {
    const Lease worker(*this);
    int64_t at = index;
    for (int64_t attempt = 0;; ++attempt) {
      std::string reason;
      try {
        const auto encoded = images_->load(at, &worker->buffer, components[1]);
        worker->reader.read(encoded, images_->locate(at), context, reinterpret_cast<float*>(components[0]));
        return;
      } catch (const Error& error) {
        if (options_.on_bad_sample == OnBadSample::kError || !about_data(error)) throw;
        reason = error.what();
      }
      options_.bad_samples->add(at, reason, options_.max_bad_samples);
      at = (at + 1) % size();
      if (attempt >= size()) throw DataError("no sample of the data set can be read; the first: " + reason);
    }
  }

 private:
  struct Worker {
    explicit Worker(const ImageOptions& options) : reader(options.augmentation, options.limits) {}
    image::ImageReader reader;
    LoadBuffer buffer;
  };

  // One of the workers that are free, for as long as a sample takes.
  class Lease {
   public:
    explicit Lease(const AugmentedImages& source) : source_(source) {
      {
        const std::lock_guard lock(source.mutex_);
        if (!source.free_.empty()) {
          worker_ = std::move(source.free_.back());
          source.free_.pop_back();
        }
      }
      if (!worker_) worker_ = std::make_unique<Worker>(source.options_);
    }
    ~Lease() {
      const std::lock_guard lock(source_.mutex_);
      source_.free_.push_back(std::move(worker_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Worker* operator->() const { return worker_.get(); }

   private:
    const AugmentedImages& source_;
    std::unique_ptr<Worker> worker_;
  };

  static bool about_data(const Error& error) {
    return dynamic_cast<const DataError*>(&error) || dynamic_cast<const IoError*>(&error) ||
           dynamic_cast<const NotFound*>(&error);
  }

  std::shared_ptr<const EncodedImages> images_;
  ImageOptions options_;
  std::vector<TensorType> signature_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Worker>> free_;
};

[[noreturn]] void fail(const char* what, const std::string& path) {
  const std::string text = fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno));
  if (errno == ENOENT) throw NotFound(text);
  throw IoError(text);
}

}  // namespace

std::span<const std::byte> read_into(const std::string& path, RecordBuffer* buffer) {
  class Descriptor {
   public:
    explicit Descriptor(const std::string& name) : value(::open(name.c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~Descriptor() {
      if (value >= 0) ::close(value);
    }
    const int value;
  } file(path);
  if (file.value < 0) fail("open", path);
  struct stat status {};
  if (::fstat(file.value, &status) != 0) fail("look at", path);
  if (!S_ISREG(status.st_mode)) throw IoError(fmt::format("'{}' is not a regular file", path));
  const auto bytes = buffer->take(static_cast<size_t>(status.st_size));
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(file.value, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path);
    if (got == 0) break;  // shorter than it was a moment ago
    filled += static_cast<size_t>(got);
  }
  return bytes.first(filled);
}

Dataset augmented_images(std::shared_ptr<const EncodedImages> images, const ImageOptions& options,
                         const std::string& function, SourceLocation where) {
  const std::string place = fmt::format("{} ({})", function, to_string(where));
  image::validate(options.augmentation, place);
  if (options.max_bad_samples < 0)
    throw InvalidArgument(
        fmt::format("{}: max_bad_samples must be at least 0, it is {}", place, options.max_bad_samples));
  return Dataset::from_source(std::make_shared<AugmentedImages>(std::move(images), options), where);
}

}  // namespace mox::data::internal
