#include "runtime/data/content_sample.h"

#include <fmt/format.h>

#include "runtime/base/random.h"
#include "runtime/data/internal/cursor.h"
#include "runtime/data/internal/node.h"
#include "runtime/text/printable.h"

namespace mox {
namespace {

constexpr std::string_view kContents = "contents ", kOf = " of ";

std::string_view description_in(std::string_view mark) {
  return mark.starts_with(kContents) ? mark.substr(mark.find(kOf) + kOf.size()) : mark;
}

}  // namespace

std::vector<std::string> content_sample(const Dataset& dataset) { return dataset.node()->contents(); }

std::string content_mark(const Dataset& dataset) {
  const std::vector<std::string> lines = content_sample(dataset);
  std::string description = printable(dataset.describe());  // names of files may be no text
  if (lines.empty()) return description;
  uint64_t checksum = lines.size();
  for (const std::string& line : lines) checksum = mix_hash(checksum, stable_hash(line));
  return fmt::format("{}{:016x}{}{}", kContents, checksum, kOf, description);
}

bool are_of_the_same_data(std::string_view mark, std::string_view other) {
  if (mark == other) return true;
  using data::internal::without_precision;
  const std::string_view description = description_in(mark), other_description = description_in(other);
  return description != other_description &&
         without_precision(std::string(description)) == without_precision(std::string(other_description));
}

}  // namespace mox
