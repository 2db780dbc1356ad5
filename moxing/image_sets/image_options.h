// What all data sets of encoded images share: how a sample is made, and what happens to those that
// cannot be read.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/image/augmentation.h"
#include "runtime/tensor/dtype.h"

namespace mox::data {

enum class OnBadSample {
  kError,  // an image that cannot be read or decoded ends the run with an error that names it
  kSkip,   // it is logged, counted and listed, and the next sample that can be read takes its place
  // It is logged, counted and listed, and is no sample of the data set: for evaluations and predictions,
  // where a substitute would count twice, or be the answer to another file. Making the data set reads all
  // images once; each rank of a job reads them. One that cannot be read later is an error.
  kLeaveOut,
};
// "error" or "skip"; throws InvalidArgument for another name.
OnBadSample on_bad_sample_from_string(std::string_view name);

// The samples that were skipped; in a job of several ranks by any of them, since they tell each other between
// steps, and at the end of an evaluation. Safe from any thread.
class BadSamples {
 public:
  // Counts sample `index`, once however often it is met. Throws DataError, listing some, when more than
  // `limit` are counted, then for each that is met again, too.
  void add(int64_t index, const std::string& reason, int64_t limit);
  // The same for one that another rank has met, and logged.
  void add_of_another_rank(int64_t index, const std::string& reason, int64_t limit);
  int64_t count() const;
  std::vector<std::string> reasons() const;  // in order of discovery; at most the first thousand

 private:
  void count_one(int64_t index, const std::string& reason, int64_t limit, bool logs);

  mutable std::mutex mutex_;
  std::set<int64_t> indices_;
  std::vector<std::string> reasons_;
};

// Where images are kept for later passes. The samples are the same, bit for bit, with a cache and without,
// but for kResized.
enum class ImageCache {
  kNone,
  kMemory,  // as long as the data set lives, up to cache_bytes and to what the run's data_memory_mb gives to
            // all that data sets keep; what does not fit is made in every pass, which is said once
  kDirectory,  // in cache_directory, for later runs too. Processes that use it at the same time (the ranks of
               // a job) have
  // a copy each. One that was interrupted, damaged or made for other files is detected and made anew
};
// "none", "memory" or "directory"; throws InvalidArgument for another name.
ImageCache image_cache_from_string(std::string_view name);

enum class CacheContent {
  kDecoded,  // pixels, 3 bytes each: later passes only crop, resize and augment. Not with
             // Augmentation::fast_decode
  kResized,  // ready for augmentation: pixels of images whose shorter side is resized to `resized_shorter`
             // where it is larger, so
  // that later passes read, crop and resize a small image. The samples are those of the resized images in
  // every pass, the first included, whatever fits into the cache; they are smoother than the originals' where
  // a crop is smaller than the network's image. With Crop::kCentre and resize_shorter = resized_shorter they
  // are the originals'. Not with fast_decode
  kBytes,  // the images as they are encoded: for files that lie far away
};
// "decoded", "resized" or "bytes"; throws InvalidArgument for another name.
CacheContent cache_content_from_string(std::string_view name);

struct ImageOptions {
  image::Augmentation augmentation = {};
  image::DecodeLimits limits = {};

  // Of the images: kFloat32, or kBFloat16: the same numbers rounded to nearest even, written so into the
  // batch (see ImageReader). What a cache holds does not depend on it, nor does the position of a run in its
  // data. preferred_image_dtype() is what the run wants.
  DType dtype = DType::kFloat32;

  // With kSkip, a position always holds the same sample, so that order and resuming stay exact; a substitute
  // is counted in its own place as well. The limits are those of kLeaveOut, too.
  OnBadSample on_bad_sample = OnBadSample::kError;
  int64_t max_bad_samples = 100;  // kSkip: more than these, of all ranks, end the run
  // kSkip: more than this share of a class ends the run, 0 to 1 (any); of files with one label each. Where
  // the sizes of classes are known by reading alone (TFRecord), once all samples were met, or 20 bad ones of
  // the class. In a job of several ranks what all have read counts: they tell each other between steps, and
  // at the end of an evaluation or prediction, and end together. With kError, too: files of a folder that are
  // left out because of what they are called or where they lie (see ImageFile).
  double max_bad_share = 0.5;

  ImageCache cache = ImageCache::kNone;
  CacheContent cache_content = CacheContent::kDecoded;
  // kResized. 0: what the recipe resizes to (resize_shorter_max) before kCentre and kRandom, else 8/7 of the
  // larger of height and width (256 of 224).
  int resized_shorter = 0;
  int64_t cache_bytes = int64_t{4} << 30;
  std::string cache_directory = {};
  bool remove_cache_on_finish = false;  // kDirectory: when the data set's last copy goes

  // Where to list what is skipped, for a program that wants to see it.
  std::shared_ptr<BadSamples> bad_samples = nullptr;
};

// "0: daisy", "1: rose", ... : the lines of labels.txt. Numbers are 0, 1, 2, ... in any order, each once;
// empty lines are passed over. A name in double quotes is a string of JSON: one that begins with a space or a
// quote is written so. Throws DataError with the line.
std::vector<std::string> read_label_names(const std::string& path);
// The same from text in memory; `name` stands for the path in messages.
std::vector<std::string> parse_label_names(std::string_view content, const std::string& name);
// Throws IoError, and as require_writable_names.
void write_label_names(const std::string& path, const std::vector<std::string>& names);
// Throws DataError, naming `place`, for an empty name or one with a control character, such as the end of a
// line: no list of names, and nothing that prints them, would show it as it is.
void require_writable_names(const std::vector<std::string>& names, const std::string& place);

}  // namespace mox::data
