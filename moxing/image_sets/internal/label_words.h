// The words that label files call classes by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "moxing/image_sets/internal/set_files.h"

namespace mox::data::internal {

// The lines of file `index`, without a byte order mark at its beginning and blanks around each: editors that
// write these do not mean another class.
std::vector<std::string> label_lines(const SetFiles& files, int64_t index);

// Warns of classes whose names differ only in case or spaces: mostly one class in two spellings, which would
// be learnt as two.
void warn_of_similar_names(const std::string& directory, const std::vector<std::string>& names);

}  // namespace mox::data::internal
