// Images that are arrays of NumPy already: an .npz archive with `images`, uint8 or float32 [samples, channels, height, width], and
// `labels`, whole numbers [samples].
#pragma once

#include <moxing/moxing.h>

#include <cstdint>
#include <string>

namespace image_classifier {

// One more than the largest label. Throws as mox::data::read_npz, NotFound and DataError for other arrays than these.
int64_t classes_of_arrays(const std::string& path);

// Elements {image, label}: float32[channels, height, width], of uint8 divided by 255, and int32[]. Throws as
// classes_of_arrays, DataError for a label outside of [0, num_classes).
mox::Dataset samples_of_arrays(const std::string& path, int64_t num_classes);

}  // namespace image_classifier
