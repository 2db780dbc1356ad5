// What a TableSchema is a handle to: a few bytes for each column and category.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "moxing/formats/text_list.h"
#include "moxing/tabular/table_schema.h"

namespace mox::internal {

struct TableSchemaContent {
  struct Column {
    size_t name = 0;     // its place in `texts`; the vocabulary follows
    uint32_t words = 0;  // of numbers 1 where all rows had the same, and else 0
    bool is_category = false, was_missing = false;
    TableMoments moments = {};
  };

  TableTask task = TableTask::kRegression;
  std::string target, id, training_part;
  TableMoments target_moments;
  std::vector<std::string> classes;
  std::vector<std::string> missing_words;  // in lower case, sorted; the empty one among them
  std::vector<double> missing_numbers;     // those of them that are numbers, however a cell spells these
  char decimal = '.';
  data::TextList texts;
  std::vector<Column> columns;

  bool is_missing(std::string_view cell) const;
  void set_missing_words(std::vector<std::string> words);  // behind `decimal`
  // A column whose vocabulary is to be added to `texts` next, and counted.
  Column& add_column(std::string_view name, TableColumnKind kind, bool was_missing);
  // The vocabulary of the last column, of numbers that are all its mean.
  void add_only_value(Column& column);
};

}  // namespace mox::internal
