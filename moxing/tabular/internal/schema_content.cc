#include "moxing/tabular/internal/schema_content.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/nearest_name.h"

namespace mox::internal {

bool TableSchemaContent::is_missing(std::string_view cell) const {
  if (cell.empty()) return true;
  size_t longest = 0;
  for (const std::string& word : missing_words) longest = std::max(longest, word.size());
  if (cell.size() <= longest &&
      std::binary_search(missing_words.begin(), missing_words.end(), lower_case(cell)))
    return true;
  if (missing_numbers.empty()) return false;
  const auto number = data::parse_number(cell, decimal);
  return number && std::ranges::find(missing_numbers, *number) != missing_numbers.end();
}

void TableSchemaContent::set_missing_words(std::vector<std::string> words) {
  missing_words = std::move(words);
  std::sort(missing_words.begin(), missing_words.end());
  missing_numbers.clear();
  for (const std::string& word : missing_words)
    if (const auto number = data::parse_number(word, decimal)) missing_numbers.push_back(*number);
}

TableSchemaContent::Column& TableSchemaContent::add_column(std::string_view name, TableColumnKind kind,
                                                           bool was_missing) {
  const size_t place = texts.size();
  texts.add(name);
  return columns.emplace_back(
      Column{.name = place, .is_category = kind == TableColumnKind::kCategory, .was_missing = was_missing});
}

void TableSchemaContent::add_only_value(Column& column) {
  texts.add(fmt::format("{}", column.moments.mean));
  column.words = 1;
}

}  // namespace mox::internal
