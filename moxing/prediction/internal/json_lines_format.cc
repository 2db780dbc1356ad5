#include <nlohmann/json.hpp>

#include "moxing/prediction/internal/formats.h"
#include "moxing/prediction/internal/predictions_part_file.h"
#include "moxing/prediction/internal/text_numbers.h"
#include "moxing/prediction/internal/unicode_names.h"

namespace mox::internal {
namespace {

std::string json_text(const std::string& text) { return nlohmann::json(text).dump(); }

// The numbers from `*next` on, nested as axes `axis` and on say.
std::string nested_text(const Array& value, int axis, size_t* next) {
  if (axis == value.shape().rank()) return number_text(value, (*next)++, "null");
  std::string text = "[";
  for (int64_t i = 0; i < value.shape()[axis]; ++i)
    text += (i == 0 ? "" : ",") + nested_text(value, axis + 1, next);
  return text + "]";
}

class JsonLinesPredictions : public PredictionsFile {
 public:
  explicit JsonLinesPredictions(const std::string& path) : file_(path), text_of_(path) {}

  void add(const OutputBatch& batch) override {
    if (rows_ == 0) first_ = batch;
    require_like_first(batch, first_);
    std::string text;
    for (int64_t row = 0; row < batch.samples(); ++row) {
      text += "{\"sample\":" + std::to_string(batch.first_sample + row);
      if (!batch.sample_names.empty()) text += ",\"file\":" + json_text(text_of_(batch.sample_names[row]));
      for (const auto& [name, value] : batch) {
        size_t next = row * (value.elements() / batch.samples());
        text += "," + json_text(text_of_(name)) + ":" + nested_text(value, 1, &next);
      }
      text += "}\n";
    }
    file_.write(text);
    rows_ += batch.samples();
  }
  void finish() override { file_.finish(); }

 private:
  PredictionsPartFile file_;
  OutputBatch first_;
  UnicodeNames text_of_;
};

}  // namespace

std::unique_ptr<PredictionsFile> open_json_lines(const std::string& path) {
  return std::make_unique<JsonLinesPredictions>(path);
}

}  // namespace mox::internal
