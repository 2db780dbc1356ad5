// Photographs without labels, to be looked at by a trained model.
#pragma once

#include <string>
#include <vector>

#include "moxing/image_sets/image_options.h"
#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"

namespace mox::data {

// The images that `path` stands for:
//   a directory  every file below it called *.jpg, *.jpeg or *.png (in any case), sorted by path; what begins
//                with a dot is passed over, others are left out and counted in a warning
//   FILE.txt     the files that its lines name, in their order; a path that is not absolute counts from the
//                directory of FILE.txt
//   a file       itself
// Throws NotFound for what does not exist, naming the line of a list; DataError if there are no images.
std::vector<std::string> list_image_files(const std::string& path);

// Elements {image}: options.dtype[channels, height, width], in the order of `paths`, each named by its path
// (see Batch::names). Throws InvalidArgument for options.on_bad_sample = kSkip: it would give another file's
// answer for one that cannot be read.
Dataset image_files(std::vector<std::string> paths, const ImageOptions& options,
                    SourceLocation where = SourceLocation::current());

}  // namespace mox::data
