// The tables of the job tabular, as its options name them.
#pragma once

#include <moxing/moxing.h>

#include <optional>
#include <string>
#include <vector>

namespace tabular {

// Defines the flags data.*. Before mox::init.
void define_data_flags();

// Reads the tables that the run needs, and fits the schema or takes that of the checkpoint. Every cell is
// read and checked here, before anything is computed.
class TabularData {
 public:
  TabularData();

  const mox::TableSchema& schema() const { return *schema_; }
  mox::Dataset dataset(mox::ModeKeys mode) const;

 private:
  // Rows of a table.
  struct Part {
    mox::data::CsvTable table;
    std::vector<int64_t> rows;
  };
  struct Parts {
    Part training, evaluation;
    std::string name;       // of the training part
    bool is_split = false;  // of one file
  };

  static Parts read_parts();
  mox::Dataset samples_of(const Part& part, bool with_target) const;

  std::optional<mox::TableSchema> schema_;
  std::optional<mox::Dataset> training_, evaluation_, prediction_;
};

}  // namespace tabular
