// Any bytes are labels of an image, a line each, without blanks around them.
#include <cstdint>
#include <string_view>

#include "moxing/image_sets/internal/label_words.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  size_t before = 0;
  const auto is_blank = [](char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; };
  mox::data::internal::for_each_label({reinterpret_cast<const char*>(data), size}, [&](std::string_view label,
                                                                                       size_t line) {
    MOX_ASSERT(!label.empty() && label.find('\n') == std::string_view::npos, "a label is a part of a line");
    MOX_ASSERT(!is_blank(label.front()) && !is_blank(label.back()), "the blanks around it are not its own");
    MOX_ASSERT(line > before && line <= size, "each line has one label at most");
    before = line;
  });
  return 0;
}
