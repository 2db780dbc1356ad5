// The different words of a column, sorted, and how many rows have each: eight bytes a word beside the table.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "moxing/formats/csv_table.h"

namespace mox::internal {

class WordCounts {
 public:
  WordCounts(data::CsvTable table, size_t column) : table_(std::move(table)), column_(column) {}

  void add(int64_t row);
  void finish();  // behind the last add, before what follows

  size_t size() const { return words_.size(); }
  std::string_view word(size_t i) const { return cell(words_[i].row); }
  int64_t rows(size_t i) const { return words_[i].count; }

 private:
  struct Word {
    uint32_t row, count;  // a row that has it
  };
  std::string_view cell(uint32_t row) const { return table_.cell(row, column_); }
  void take_unknown();

  data::CsvTable table_;
  size_t column_;
  std::vector<Word> words_;        // sorted
  std::vector<uint32_t> unknown_;  // rows whose word was none of them
};

}  // namespace mox::internal
