// A sample of what a data set's sources hold: checksums of a few samples at fixed places, so that data of the
// same names, number and types but other contents are noticed, between ranks and when a run goes on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/dataset.h"

namespace mox {

// Lines like "sample 37 ('daisy/1.jpg') of image folder, 3670 images: 9a0c11f2", up to sixteen for each
// random-access source, in the order of the operations; a sample that cannot be read is a line that says so.
// At most 256 lines. Generators have none: they cannot be asked without beginning a pass. Each source
// is read once.
std::vector<std::string> content_sample(const Dataset& dataset);

// What tells a data set from others, in a line: a checksum of the lines of content_sample, if there are any,
// and Dataset::describe.
std::string content_mark(const Dataset& dataset);

// Whether two of these are of the same data. The precision of the samples, in which they are other bytes,
// does not count.
bool are_of_the_same_data(std::string_view mark, std::string_view other);

}  // namespace mox
