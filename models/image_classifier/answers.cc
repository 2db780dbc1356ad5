#include "models/image_classifier/answers.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>

#include "runtime/text/printable.h"

namespace image_classifier {
namespace {

std::string answer(std::span<const float> probabilities, const std::vector<std::string>& names, size_t top) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  top = std::min(top, order.size());
  // Of equal ones the first, in every run.
  std::partial_sort(order.begin(), order.begin() + top, order.end(), [&](size_t a, size_t b) {
    return probabilities[a] != probabilities[b] ? probabilities[a] > probabilities[b] : a < b;
  });
  std::string text;
  for (size_t i = 0; i < top; ++i) {
    char share[64];  // as in every locale
    const auto end =
        std::to_chars(share, share + sizeof share, probabilities[order[i]], std::chars_format::fixed, 3);
    text += (i == 0 ? "" : ", ") +
            (order[i] < names.size() ? mox::printable(names[order[i]]) : std::to_string(order[i])) + ' ' +
            std::string(share, end.ptr);
  }
  return text;
}

}  // namespace

void define_prediction_flags() {
  mox::define_flag(
      "predict.images", "",
      "What run_mode predict looks at: a directory of images (and all below it), one image, or a "
      "list (FILE.txt, a path a line). No labels are needed, and no data_url. Empty: data.eval_split.");
  mox::define_flag("predict.top", 5,
                   "Classes that run_mode predict prints for each image, the likeliest first.");
}

std::vector<std::string> label_names_of_run() {
  std::string lines;
  if (mox::rank() == 0)
    if (const auto trained = mox::trained_label_names(mox::checkpoint_path_of_run(), mox::log_dir_of_run()))
      for (const std::string& name : trained->names) lines += name + '\n';
  lines = mox::broadcast(lines);
  std::vector<std::string> names;
  for (size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1)
    names.push_back(lines.substr(at, lines.find('\n', at) - at));
  return names;
}

mox::OutputFn print_answers(const std::vector<std::string>& label_names) {
  const auto top = mox::get_flag<int64_t>("predict.top");
  if (top < 1) throw mox::InvalidArgument("predict.top must be at least 1, it is " + std::to_string(top));
  if (!mox::flag("predictions").empty()) return nullptr;
  return [label_names, top](std::span<const mox::OutputBatch> batches) {
    for (const mox::OutputBatch& batch : batches) {
      const mox::Array& probabilities = batch.array("probabilities");
      for (int64_t row = 0; row < batch.samples(); ++row) {
        const std::string name = batch.sample_names.empty()
                                     ? "sample " + std::to_string(batch.first_sample + row)
                                     : batch.sample_names[row];
        const mox::Array of_row = probabilities.rows(row, row + 1);
        std::printf("%s: %s\n", mox::printable(name).c_str(),
                    answer(of_row.values<float>(), label_names, top).c_str());
      }
    }
    std::fflush(stdout);
  };
}

}  // namespace image_classifier
