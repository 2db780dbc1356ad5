#include "models/tabular/absent_classes.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "runtime/base/log.h"

namespace tabular {

void warn_of_absent_classes(const mox::TableSchema& schema, const mox::data::CsvTable& evaluation,
                            std::span<const int64_t> rows) {
  constexpr int64_t kMostNamed = 5;
  if (schema.task() != mox::TableTask::kClassification || mox::rank() != 0) return;
  const std::vector<int64_t> counts = mox::rows_of_classes(schema, evaluation, rows);
  int64_t absent = 0;
  std::string names;
  for (size_t label = 0; label < counts.size(); ++label) {
    if (counts[label] > 0 || ++absent > kMostNamed) continue;
    names += (names.empty() ? "'" : ", '") + schema.class_names()[label] + "'";
  }
  if (absent == 0) return;
  if (absent > kMostNamed) names += fmt::format(" and {} more", absent - kMostNamed);
  mox::log_warning(fmt::format(
      "the evaluation has no row of {} of the {} classes ({}): what is measured on its {} rows of "
      "'{}' says nothing of {}. A larger data.eval_fraction or another data.split_seed holds other rows "
      "back, data.eval_file takes those of a file",
      absent, counts.size(), names, rows.size(), evaluation.path(), absent == 1 ? "it" : "them"));
}

}  // namespace tabular
