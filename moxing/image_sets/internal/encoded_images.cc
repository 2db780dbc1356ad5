#include "moxing/image_sets/internal/encoded_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "moxing/config/state.h"
#include "moxing/file/s3/store_error.h"
#include "moxing/image/decode.h"
#include "moxing/image/resample.h"
#include "moxing/image_sets/internal/kept_images.h"
#include "moxing/image_sets/internal/readable_samples.h"
#include "moxing/image_sets/internal/sample_findings.h"
#include "moxing/image_sets/internal/skipped_share.h"
#include "moxing/job/data_memory.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"

namespace mox::data::internal {
namespace {

constexpr int kMostShorter = 1 << 14;
constexpr int32_t kUnknownClass = -1;

void set_class(std::byte* label, int32_t number) { std::memcpy(label, &number, sizeof number); }
int32_t class_in(const std::byte* label) {
  int32_t number = 0;
  std::memcpy(&number, label, sizeof number);
  return number;
}

// A cache in memory is a part of what the run's pipelines may have.
std::unique_ptr<KeptImages> kept_in_memory_of(int64_t images, const ImageOptions& options) {
  return kept_in_memory(images, static_cast<uint64_t>(options.cache_bytes),
                        mox::internal::is_configured() ? mox::internal::data_memory_of_process() : nullptr);
}

class AugmentedImages : public RandomAccessSource {
 public:
  AugmentedImages(std::shared_ptr<const EncodedImages> images, const ImageOptions& options,
                  SourceLocation where)
      : images_(std::move(images)), options_(options) {
    if (!options_.bad_samples) options_.bad_samples = std::make_shared<BadSamples>();
    const auto& recipe = options_.augmentation;
    signature_ = {{options_.dtype, Shape{recipe.channels, recipe.height, recipe.width}}};
    if (images_->has_labels()) signature_.push_back(images_->label_type());
    one_class_each_ = images_->has_labels() && signature_[1] == TensorType{DType::kInt32, Shape{}};
    std::vector<int64_t> sizes = images_->class_sizes();
    if (options_.on_bad_sample != OnBadSample::kError && (one_class_each_ || !sizes.empty()))
      skipped_ = std::make_unique<SkippedShare>(images_->size(), std::move(sizes), images_->class_names(),
                                                options_.max_bad_share);
    if (options_.cache == ImageCache::kMemory)
      kept_ = kept_in_memory_of(images_->size(), options_);
    else if (options_.cache == ImageCache::kDirectory)
      kept_ = kept_in_directory(images_->size(),
                                {.directory = options_.cache_directory,
                                 .identity = fmt::format("{} {}", describe_content(), images_->identity()),
                                 .remove_on_finish = options_.remove_cache_on_finish});
    if (options_.on_bad_sample == OnBadSample::kLeaveOut) leave_out(where);
  }

  int64_t size() const override { return readable_.empty() ? images_->size() : std::ssize(readable_); }
  const std::vector<TensorType>& signature() const override { return signature_; }
  std::string name(int64_t index) const override { return images_->locate(image_of(index)); }
  void will_read(int64_t index) const override { will_read_image(image_of(index)); }
  // Of the encoded image: nothing need be decoded, and another precision has the same.
  uint32_t content_checksum(int64_t index) const override {
    LoadBuffer buffer;
    std::vector<std::byte> label(signature_.size() > 1 ? signature_[1].bytes() : 0);
    return crc32(label, crc32(images_->load(image_of(index), &buffer, label.data())));
  }
  std::string describe() const override {
    return fmt::format("{}{}{}, augmented {}", images_->describe(), describe_left_out(),
                       resizes() ? ", " + describe_content() : "", image::describe(options_.augmentation));
  }

  void read(int64_t index, const SampleContext& context,
            std::span<std::byte* const> components) const override {
    const Lease worker(*this);
    if (options_.on_bad_sample != OnBadSample::kSkip)
      return read_itself(image_of(index), context, *worker, components);
    int64_t at = index;
    for (int64_t attempt = 0;; ++attempt) {
      const std::optional<std::string> fault = fault_of(at, context, *worker, components);
      const int32_t number = skipped_ && one_class_each_ ? class_in(components[1]) : kUnknownClass;
      if (!fault) {
        if (skipped_ && one_class_each_ && skipped_->add_good(at, number)) findings_.add_good(at, number);
        return;
      }
      findings_.add_bad(at, number, *fault);
      options_.bad_samples->add(at, *fault, options_.max_bad_samples);
      count_skipped(at, number, *fault);
      at = (at + 1) % size();
      if (attempt >= size()) throw DataError("no sample of the data set can be read; the first: " + *fault);
    }
  }

  std::string take_findings() const override { return findings_.take(); }
  void add_findings(std::string_view text) const override {
    for (const SampleFinding& finding : findings_from_text(text, size())) {
      if (finding.is_good) {
        if (skipped_) skipped_->add_good(finding.index, finding.number);
        continue;
      }
      findings_.note_bad_elsewhere(finding.index);
      options_.bad_samples->add_of_another_rank(finding.index, finding.reason, options_.max_bad_samples);
      count_skipped(finding.index, finding.number, finding.reason);
    }
  }

 private:
  struct Worker {
    explicit Worker(const ImageOptions& options)
        : reader(options.augmentation, options.limits), decoder(options.limits) {}
    image::ImageReader reader;
    image::Decoder decoder;
    image::Resampler resampler;
    LoadBuffer buffer;
    KeptImage scratch;                // an image that is made to be kept
    std::vector<uint8_t> found;       // memory for one that was
    std::vector<std::byte> tried[2];  // the components of one that nobody asks for
  };

  int64_t image_of(int64_t index) const { return readable_.empty() ? index : readable_[index]; }
  void will_read_image(int64_t image) const {
    if (!kept_ || !kept_->keeps(image)) images_->will_read(image);
  }

  void read_itself(int64_t image, const SampleContext& context, Worker& worker,
                   std::span<std::byte* const> components) const {
    try {
      write(image, context, worker, components);
    } catch (const DataError& error) {
      if (!about_data(error)) throw;
      throw DataError(fmt::format("{} ({})", error.what(), advice()));
    }
  }

  const char* advice() const {
    if (options_.on_bad_sample == OnBadSample::kLeaveOut)
      return "when the data set was made it could be read: leave the files alone while they are in use";
    return signature_.size() > 1
               ? "on_bad_sample, for the image classifier data.on_bad_sample=skip, passes over images that "
                 "cannot be read in a training, and leaves them out of an evaluation"
               : "each file is to get its own answer: take this one away, or name the others in a list";
  }

  // Why an image cannot be read; nothing if it can.
  std::optional<std::string> fault_of(int64_t image, const SampleContext& context, Worker& worker,
                                      std::span<std::byte* const> components) const {
    try {
      if (skipped_ && one_class_each_) set_class(components[1], kUnknownClass);
      write(image, context, worker, components);
    } catch (const Error& error) {
      if (!about_data(error)) throw;
      return error.what();
    }
    return std::nullopt;
  }

  void write(int64_t image, const SampleContext& context, Worker& worker,
             std::span<std::byte* const> components) const {
    std::span<std::byte> label;
    if (signature_.size() > 1) label = {components[1], signature_[1].bytes()};
    if (options_.dtype == DType::kBFloat16)
      make(image, context, worker, reinterpret_cast<BFloat16*>(components[0]), label);
    else
      make(image, context, worker, reinterpret_cast<float*>(components[0]), label);
  }

  void leave_out(SourceLocation where) {
    const std::vector<int64_t> readable = readable_samples(
        images_->size(), [this](int64_t image) { return can_read(image); },
        [this](int64_t image) { will_read_image(image); }, images_->describe(), where);
    const int64_t left_out = images_->size() - std::ssize(readable);
    if (left_out == 0) return;
    int64_t first = 0;
    while (first < std::ssize(readable) && readable[first] == first) ++first;
    if (readable.empty())
      throw DataError("no sample of the data set can be read; the first is " + images_->locate(first));
    if (mox::internal::job().rank() == 0)
      log_warning(fmt::format(
          "{} of {} samples cannot be read and are left out, the first is {}: what is said of the data is said "
          "of the other {}",
          left_out, images_->size(), images_->locate(first), readable.size()));
    readable_ = readable;
  }

  // All ranks look at all images: one of them tells what it finds.
  bool can_read(int64_t image) const {
    const Lease worker(*this);
    std::byte* components[2] = {};
    for (size_t c = 0; c < signature_.size(); ++c) {
      worker->tried[c].resize(signature_[c].bytes());
      components[c] = worker->tried[c].data();
    }
    const auto fault = fault_of(image, {.sample = static_cast<uint64_t>(image)}, *worker,
                                std::span(components, signature_.size()));
    const int32_t number = skipped_ && one_class_each_ ? class_in(components[1]) : kUnknownClass;
    if (!fault) {
      if (skipped_ && one_class_each_) skipped_->add_good(image, number);
      return true;
    }
    if (mox::internal::job().rank() == 0)
      options_.bad_samples->add(image, *fault, options_.max_bad_samples);
    else
      options_.bad_samples->add_of_another_rank(image, *fault, options_.max_bad_samples);
    count_skipped(image, number, *fault);
    return false;
  }

  std::string describe_left_out() const {
    if (readable_.empty()) return "";
    return fmt::format(" without {}, the others {:08x}", images_->size() - std::ssize(readable_),
                       crc32(std::as_bytes(std::span(readable_))));
  }

  void count_skipped(int64_t index, int32_t number, const std::string& reason) const {
    if (!skipped_) return;
    skipped_->add_bad(index, one_class_each_ ? std::span(&number, 1) : images_->classes_of(index), reason);
  }

  template <typename Value>
  void make(int64_t index, const SampleContext& context, Worker& worker, Value* image,
            std::span<std::byte> label) const {
    if (!kept_) {
      const auto encoded = images_->load(index, &worker.buffer, label.data());
      return worker.reader.read(encoded, images_->locate(index), context, image);
    }
    const auto needed = [&](int width, int height) {
      return worker.reader.needed_pixels(width, height, context);
    };
    const std::optional<FoundImage> kept = kept_->find(index, needed, &worker.found, label);
    if (kept && kept->is_decoded()) return worker.reader.read(kept->pixels, context, image);
    const std::string name = images_->locate(index);
    if (kept) return worker.reader.read(std::as_bytes(kept->encoded), name, context, image);
    const auto encoded = images_->load(index, &worker.buffer, label.data());
    if (keeps_bytes()) {
      worker.reader.read(encoded, name, context, image);
      if (kept_->has_room(encoded.size())) keep_encoded(index, encoded, worker, label);
      return;
    }
    image::Decoder& decoder = worker.decoder;
    decoder.open(encoded, name);
    const image::Box size = kept_size(decoder);
    const bool room =
        kept_->has_room(uint64_t{image::kPlanes} * static_cast<uint64_t>(size.width) * size.height);
    if (!room && !resizes()) return worker.reader.read(encoded, name, context, image);
    decode_to(size, worker);
    if (room) kept_->keep(index, worker.scratch, label);
    worker.reader.read(worker.scratch.pixels.view(), context, image);
  }

  // The size that pixels are kept in, of the image that is open.
  image::Box kept_size(const image::Decoder& decoder) const {
    image::Box size{0, 0, decoder.width(), decoder.height()};
    const int shorter = std::min(size.width, size.height);
    if (!resizes() || shorter <= resized_shorter()) return size;
    const double scale = static_cast<double>(resized_shorter()) / shorter;
    size.width = static_cast<int>(std::lround(size.width * scale));
    size.height = static_cast<int>(std::lround(size.height * scale));
    return size;
  }

  // Decodes the image that is open into worker.scratch.
  void decode_to(const image::Box& size, Worker& worker) const {
    image::Decoder& decoder = worker.decoder;
    const image::Box whole{0, 0, decoder.width(), decoder.height()};
    image::PlanarBitmap& pixels = worker.scratch.pixels;
    pixels = image::PlanarBitmap(size.width, size.height);
    if (size == whole)
      return decoder.decode(whole, [&](int y, const uint8_t* row) { pixels.set_row(y, row); });
    worker.resampler.prepare({.source = image::Region::of(whole),
                              .resized_width = size.width,
                              .resized_height = size.height,
                              .output = size,
                              .filter = options_.augmentation.filter});
    const auto store = [&](int y, const uint8_t* const* planes) {
      for (int c = 0; c < image::kPlanes; ++c) std::copy_n(planes[c], size.width, pixels.plane(y, c));
    };
    decoder.decode(worker.resampler.needed(),
                   [&](int y, const uint8_t* row) { worker.resampler.add_row(y, row, store); });
  }

  bool keeps_bytes() const { return options_.cache_content == CacheContent::kBytes; }
  bool resizes() const {
    return options_.cache != ImageCache::kNone && options_.cache_content == CacheContent::kResized;
  }
  int resized_shorter() const {
    if (options_.resized_shorter > 0) return options_.resized_shorter;
    const image::Augmentation& recipe = options_.augmentation;
    if (recipe.crop == image::Crop::kCentre || recipe.crop == image::Crop::kRandom)
      return recipe.resize_shorter_max;
    return std::lround(std::max(recipe.height, recipe.width) * 8.0 / 7);
  }
  std::string describe_content() const {
    if (keeps_bytes()) return "encoded";
    return resizes() ? fmt::format("resized to {}, filter {}", resized_shorter(),
                                   static_cast<int>(options_.augmentation.filter))
                     : "decoded";
  }

  void keep_encoded(int64_t index, std::span<const std::byte> encoded, Worker& worker,
                    std::span<const std::byte> label) const {
    const auto* bytes = reinterpret_cast<const uint8_t*>(encoded.data());
    worker.scratch.pixels = {};
    worker.scratch.encoded.assign(bytes, bytes + encoded.size());
    kept_->keep(index, worker.scratch, label);
  }

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
    Worker& operator*() const { return *worker_; }
    Worker* operator->() const { return worker_.get(); }

   private:
    const AugmentedImages& source_;
    std::unique_ptr<Worker> worker_;
  };

  // A store that cannot be reached says nothing about the sample.
  static bool about_data(const Error& error) {
    if (dynamic_cast<const file::s3::StoreError*>(&error)) return false;
    return dynamic_cast<const DataError*>(&error) || dynamic_cast<const IoError*>(&error) ||
           dynamic_cast<const NotFound*>(&error);
  }

  std::shared_ptr<const EncodedImages> images_;
  ImageOptions options_;
  std::vector<TensorType> signature_;
  std::unique_ptr<KeptImages> kept_;
  bool one_class_each_ = false;
  std::unique_ptr<SkippedShare> skipped_;  // not kError, of images with classes
  std::vector<int64_t> readable_;          // kLeaveOut: the images that are samples; empty where all are
  mutable SampleFindings findings_;        // for the other ranks
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Worker>> free_;
};

}  // namespace

Dataset augmented_images(std::shared_ptr<const EncodedImages> images, const ImageOptions& options,
                         const std::string& function, SourceLocation where) {
  const std::string place = fmt::format("{} ({})", function, to_string(where));
  image::validate(options.augmentation, place);
  image::validate_sample_dtype(options.dtype, place);
  if (options.max_bad_samples < 0)
    throw InvalidArgument(
        fmt::format("{}: max_bad_samples must be at least 0, it is {}", place, options.max_bad_samples));
  if (!(options.max_bad_share >= 0 && options.max_bad_share <= 1))
    throw InvalidArgument(
        fmt::format("{}: max_bad_share must be in [0, 1], it is {}", place, options.max_bad_share));
  if (options.cache != ImageCache::kNone && options.cache_content != CacheContent::kBytes &&
      options.augmentation.fast_decode)
    throw InvalidArgument(fmt::format(
        "{}: a cache of decoded images and fast_decode exclude each other: what the cache holds was "
        "decoded at full scale",
        place));
  if (options.resized_shorter < 0 || options.resized_shorter > kMostShorter)
    throw InvalidArgument(fmt::format("{}: resized_shorter must be 0 to {}, it is {}", place, kMostShorter,
                                      options.resized_shorter));
  if (options.cache == ImageCache::kMemory && options.cache_bytes < 0)
    throw InvalidArgument(
        fmt::format("{}: cache_bytes must be at least 0, it is {}", place, options.cache_bytes));
  if (options.cache == ImageCache::kDirectory && options.cache_directory.empty())
    throw InvalidArgument(fmt::format("{}: a cache in a directory needs cache_directory", place));
  return Dataset::from_source(std::make_shared<AugmentedImages>(std::move(images), options, where), where);
}

}  // namespace mox::data::internal
