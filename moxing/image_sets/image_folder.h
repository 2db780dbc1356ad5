// Photographs in folders.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "moxing/image_sets/image_options.h"
#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"

namespace mox::data {

namespace internal {
class LeftOutImages;
}

// The files of one image folder. Images are the files called *.jpg, *.jpeg or *.png (in any case); what
// begins with a dot is passed over; others are left out and counted in a warning. Content decides the format,
// not the name. Images of other kinds (*.webp, *.heic, ...) and those in directories below that of a class
// are left out, too, with a warning that says how to mend it; `dataset` throws DataError where they are more
// than options.max_bad_share of a class.
struct ImageFile {
  std::string path;  // from the folder's root
  int32_t label = 0;
};

// A class is a sub-directory, an image belongs to the class whose directory it is in:
//
//   ROOT/daisy/001.jpg  ROOT/daisy/002.jpg  ROOT/rose/001.jpg  [ROOT/labels.txt]
//
// Images may lie one level deeper where every class keeps them in a directory `images`
// (CLASS/images/001.jpg). Labels are the classes' numbers: in the order of labels.txt ("0: daisy"), or else
// sorted by name; names that differ only in case or spaces are a warning. Samples are sorted by class and
// name, so that the order does not depend on the file system.
class ImageClassificationRaw {
 public:
  // Lists the folder. Throws NotFound or IoError for a directory that cannot be read, DataError for a folder
  // without classes, a class without images, and for a labels.txt that disagrees with the directories, naming
  // what is missing and what is too many.
  explicit ImageClassificationRaw(std::string directory);

  // The folder of a run whose classes are known: labels are the numbers of `label_names`, whatever the order
  // of a labels.txt here. Classes without a directory or images are allowed, with a warning; DataError for a
  // class that the list does not have.
  ImageClassificationRaw(std::string directory, std::vector<std::string> label_names);

  // Elements {image, label}: options.dtype[channels, height, width] and int32[].
  Dataset dataset(const ImageOptions& options, SourceLocation where = SourceLocation::current()) const;

  const std::string& directory() const { return directory_; }
  const std::vector<std::string>& label_names() const { return label_names_; }
  const std::vector<ImageFile>& files() const { return files_; }
  // For whoever must not lose an image, as a conversion: throws DataError for those of other kinds, or in
  // directories of a class, that are left out.
  void require_none_left_out() const;

 private:
  void list_classes(std::vector<std::string> others, bool may_lack);

  std::string directory_;
  std::vector<std::string> label_names_;
  std::vector<ImageFile> files_;
  std::vector<std::string> etags_;  // of each, of the listing; empty where they are not objects of a store
  std::shared_ptr<const internal::LeftOutImages> left_out_;
};

// An image may have any number of labels, whose names are the lines of a text file of its own:
//
//   ROOT/images/001.jpg  ROOT/labels/001.jpg.txt  [ROOT/labels.txt]
//
// A byte order mark at the beginning of a file and blanks around a name are no part of it. Labels are
// numbered as labels.txt says, or else sorted by name; names that differ only in case or spaces
// are a warning.
class MultilabelClassificationRaw {
 public:
  // Throws as ImageClassificationRaw, and DataError for an image without its label file, the other way round,
  // and a label (file and line) that labels.txt does not have.
  explicit MultilabelClassificationRaw(std::string directory);

  // The folder of a run whose classes are known, as of ImageClassificationRaw: classes that no image here has
  // are allowed, with a warning; DataError for a label that the list does not have.
  MultilabelClassificationRaw(std::string directory, std::vector<std::string> label_names);

  // Elements {image, labels}: options.dtype[channels, height, width] and float32[classes], 1 for the labels
  // that the image has and 0 for the others.
  Dataset dataset(const ImageOptions& options, SourceLocation where = SourceLocation::current()) const;

  const std::vector<std::string>& label_names() const { return label_names_; }
  int64_t size() const { return paths_.size(); }

 private:
  void list_images(bool are_known);

  std::string directory_;
  std::vector<std::string> label_names_;
  std::vector<std::string> paths_;  // from the directory
  std::vector<std::string> etags_;  // as above
  std::shared_ptr<const internal::LeftOutImages> left_out_;
  std::vector<std::vector<int32_t>> labels_;  // of each image
};

}  // namespace mox::data
