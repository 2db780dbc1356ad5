#include <fmt/format.h>

#include <set>

#include "moxing/prediction/internal/formats.h"
#include "moxing/prediction/internal/predictions_part_file.h"
#include "moxing/prediction/internal/text_numbers.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

// RFC 4180.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + '"';
}

class CsvPredictions : public PredictionsFile {
 public:
  explicit CsvPredictions(const std::string& path) : file_(path) {}

  void add(const OutputBatch& batch) override {
    if (rows_ == 0) first_ = batch;
    require_like_first(batch, first_);
    std::string text = rows_ == 0 ? header(batch) : "";
    for (int64_t row = 0; row < batch.samples(); ++row) {
      text += std::to_string(batch.first_sample + row);
      if (!batch.sample_names.empty()) text += ',' + csv_field(batch.sample_names[row]);
      for (const auto& [name, value] : batch) {
        const size_t length = value.elements() / batch.samples();
        for (size_t i = 0; i < length; ++i) text += ',' + number_text(value, row * length + i, nullptr);
      }
      text += '\n';
    }
    file_.write(text);
    rows_ += batch.samples();
  }
  void finish() override { file_.finish(); }

 private:
  static std::string header(const OutputBatch& batch) {
    std::string line = batch.sample_names.empty() ? "sample" : "sample,file";
    std::set<std::string> columns;
    const auto add = [&](const std::string& column) {
      if (!columns.insert(column).second)
        throw InvalidArgument(
            fmt::format("output_info gives two columns called '{}', where each element of a row has a column "
                        "of its own: choose other names",
                        column));
      line += ',' + csv_field(column);
    };
    for (const auto& [name, value] : batch) {
      if (value.shape().rank() == 1) {
        add(name);
        continue;
      }
      for (int64_t i = 0; i < value.elements() / batch.samples(); ++i) add(fmt::format("{}/{}", name, i));
    }
    return line + '\n';
  }

  PredictionsPartFile file_;
  OutputBatch first_;
};

}  // namespace

std::unique_ptr<PredictionsFile> open_csv(const std::string& path) {
  return std::make_unique<CsvPredictions>(path);
}

}  // namespace mox::internal
