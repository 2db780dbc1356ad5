// Encoded images with labels, from wherever they come, as a source of augmented samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "moxing/formats/tfrecord.h"
#include "moxing/image_sets/image_options.h"
#include "runtime/data/dataset.h"

namespace mox::data::internal {

// Memory that loading a sample may use; the bytes that are returned live in it.
struct LoadBuffer {
  RecordBuffer file;
};

// Every function is called from several threads at once.
class EncodedImages {
 public:
  virtual ~EncodedImages() = default;
  virtual int64_t size() const = 0;
  virtual bool has_labels() const {
    return true;
  }  // else label_type is not asked for, and load gets no label
  virtual TensorType label_type() const = 0;
  // How many images the classes 0, 1, ... have, where that is known without reading them; else empty.
  virtual std::vector<int64_t> class_sizes() const { return {}; }
  // What the classes are called, for messages; empty: by their numbers.
  virtual std::vector<std::string> class_names() const { return {}; }
  // The classes of an image that may have any number of them; of one that has one, which
  // `load` says, nothing.
  virtual std::span<const int32_t> classes_of(int64_t /*index*/) const { return {}; }
  // The image's bytes; writes the label to `label`, as soon as it is known. Throws DataError, NotFound or
  // IoError, naming the sample.
  virtual std::span<const std::byte> load(int64_t index, LoadBuffer* buffer, std::byte* label) const = 0;
  virtual std::string locate(int64_t index) const = 0;
  virtual void will_read(int64_t /*index*/) const {}
  virtual std::string describe() const = 0;
  // What tells these files from others of the same names, in a line: sizes, times and numbers of inodes.
  virtual std::string identity() const = 0;
};

// Elements {image, label}: options.dtype[channels, height, width] and images->label_type(); {image} alone of
// images without labels. `where` is the user's call.
Dataset augmented_images(std::shared_ptr<const EncodedImages> images, const ImageOptions& options,
                         const std::string& function, SourceLocation where);

}  // namespace mox::data::internal
