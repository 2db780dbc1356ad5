// Images that are numbers already. An .npz archive: `images`, uint8 or float32 [samples, channels, height,
// width], and `labels`, whole numbers [samples]. A .csv file: a line for each image, its label and then its
// pixels, channel by channel and row by row; a prediction takes lines without the label, too.
#pragma once

#include <moxing/moxing.h>

#include <cstdint>
#include <string>

namespace image_classifier {

struct ArrayFile {
  std::string path;  // ends in .npz or .csv
  // What .csv files do not say.
  mox::Shape csv_image = {};  // channels, height, width
  mox::data::CsvOptions csv = {};
  float csv_maximum = 255;   // the value of a pixel that becomes 1
  int64_t label_offset = 0;  // subtracted from the labels
  int64_t image_size = 0;    // that the images of an npz file must have; 0: any
  bool needs_labels = true;  // false: they may be there, are not looked at, and are 0
};

// Throws ConfigError, naming `where` they are, for images that are not of the height and width that
// model.image_size asks for (0: any): they are not resized.
void require_image_size(const mox::Shape& images, int64_t given, const std::string& where);

// One more than the largest label. Classes without a sample are a warning. Throws as mox::data::read_npz and
// read_csv, NotFound and DataError for other content than this.
int64_t classes_of_arrays(const ArrayFile& file);

// Elements {image, label}: float32[channels, height, width], of uint8 divided by 255, of .csv by csv_maximum,
// and int32[]. Throws as classes_of_arrays, DataError for a label outside of [0, num_classes), for pixels
// that are not finite, and for float32 images of the whole numbers 0 to 255, which nobody has scaled; other
// values far from 1 are a warning.
mox::Dataset samples_of_arrays(const ArrayFile& file, int64_t num_classes);

}  // namespace image_classifier
