// Images for classification in TFRecord files: the Examples that TensorFlow's tools write, with the features
// image/encoded (bytes: JPEG or PNG) and image/class/label (an integer).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "moxing/formats/tfrecord.h"
#include "moxing/image_sets/image_folder.h"
#include "moxing/image_sets/image_options.h"
#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"

namespace mox::data {

struct ImageRecordOptions {
  ImageOptions image = {};
  TfRecordOptions records = {};

  // Subtracted from the labels in the files: 1 for sets that keep 0 for "background" (ImageNet as TF-Slim
  // wrote it).
  int64_t label_offset = 0;

  // Labels, less the offset, must lie in [0, num_classes). 0: as many as labels.txt in the first file's
  // directory says; without that file, labels must not be negative.
  int64_t num_classes = 0;

  // What the classes are called. A record that says another of these names (image/class/text) than its label
  // has was numbered by another list: FailedPrecondition, which on_bad_sample does not pass over. Words that
  // are none of the names are a warning, once. Empty: labels.txt in the first file's directory, if it has
  // num_classes names; none where these are the numbers 0, 1, 2, ...
  std::vector<std::string> label_names = {};
};

// Elements {image, label}: options.image.dtype[channels, height, width] and int32[]. `patterns`
// as for match_files.
Dataset image_classification_tfrecord(const std::string& patterns, const ImageRecordOptions& options,
                                      SourceLocation where = SourceLocation::current());

// The same of these files, as match_files lists those of a directory.
Dataset image_classification_tfrecord(const std::vector<std::string>& paths,
                                      const ImageRecordOptions& options,
                                      SourceLocation where = SourceLocation::current());

// The bytes of one such record: an Example with image/encoded, image/format, image/class/label,
// image/class/text, image/filename, image/height and image/width.
struct ImageRecord {
  std::string encoded, class_name, file_name;
  int64_t label = 0;
};
std::string serialize_image_record(const ImageRecord& record);  // throws DataError if `encoded` is no image

struct ConvertOptions {
  int shards = 1;  // files: NAME-00000-of-00004 and so on
  uint64_t seed = 0;
  // Called after each image with the number done.
  std::function<void(int64_t done, int64_t total)> progress = nullptr;
};

// Writes an image folder as TFRecord files `prefix`-NNNNN-of-NNNNN and labels.txt beside them. A labels.txt
// that is there already, of another part of the set, decides the numbers: it must have all of the folder's
// classes, else DataError names both lists; the images' bytes stay as they are. Classes are mixed in a random
// order (of `seed`), so that any stretch of a file is a fair sample. Images that cannot be decoded are an
// error that names the file. Returns the files' paths. Throws InvalidArgument, DataError, IoError.
std::vector<std::string> convert_image_folder(const ImageClassificationRaw& folder, const std::string& prefix,
                                              const ConvertOptions& options);

}  // namespace mox::data
