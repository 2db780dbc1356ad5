// The words that label files call classes by.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/function_ref.h"

namespace mox::data::internal {

// Calls `take` with each label of a label file, and with the number of its line from 1: the lines that are
// not empty, without a byte order mark at the beginning and blanks around each, since editors that write
// these do not mean another class. Takes no memory, as a file of nothing but ends of lines would in a list.
void for_each_label(std::string_view content, FunctionRef<void(std::string_view label, size_t line)> take);

// Warns of classes whose names differ only in case or spaces: mostly one class in two spellings, which would
// be learnt as two.
void warn_of_similar_names(const std::string& directory, const std::vector<std::string>& names);

}  // namespace mox::data::internal
