// What a person should hear of a column before a model learns from it, as rank 0 logs it.
#pragma once

#include <string_view>

#include "moxing/formats/csv_table.h"
#include "moxing/tabular/internal/word_counts.h"

namespace mox::internal {

// Words that a person would take for one. `what` the words are to the model: "classes", "categories".
void warn_of_similar(const data::CsvTable& table, std::string_view column, const WordCounts& words,
                     char decimal, std::string_view what);

// Words of which some are numbers and others are not, as where half of a file says 1 and the other half yes.
// `way_out` follows the advice to write these alike.
void warn_of_mixed(const data::CsvTable& table, std::string_view column, const WordCounts& words,
                   char decimal, std::string_view what, std::string_view way_out);

// Numbers of the rows, as pandas writes them and as many tables name theirs: the network would learn where in
// the file a row stands.
void warn_of_row_numbers(const data::CsvTable& table, size_t column, char decimal);

// Numbers within the same letters, most values of a column of categories: measures, dates, times of day.
void warn_of_numbers_in_words(const data::CsvTable& table, std::string_view column, const WordCounts& words,
                              char decimal);

// 1.234 beside 999, where the mark that is read as that of the decimals stands between thousands. `way_out`
// follows the advice to write plain numbers.
void warn_of_thousands(const data::CsvTable& table, size_t column, char decimal, std::string_view way_out);

}  // namespace mox::internal
