#include "moxing/prediction/predictions_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "moxing/prediction/internal/formats.h"
#include "runtime/base/error.h"

namespace mox {

std::unique_ptr<PredictionsFile> PredictionsFile::open(const std::string& path) {
  if (std::filesystem::path(path).filename() == "metrics.jsonl")
    throw InvalidArgument(fmt::format(
        "predictions is '{}', the name under which a run keeps its metrics, which would be lost: name "
        "another one",
        path));
  if (path.ends_with(".csv")) return internal::open_csv(path);
  if (path.ends_with(".jsonl")) return internal::open_json_lines(path);
  if (path.ends_with(".npz")) return internal::open_npz(path);
  throw InvalidArgument(
      fmt::format("predictions is '{}'; the ending says the format: .csv, .jsonl or .npz", path));
}

void require_other_than_input(const std::string& predictions, const std::string& input,
                              const std::string& use) {
  std::error_code not_there;
  if (predictions == input || std::filesystem::equivalent(predictions, input, not_there))
    throw ConfigError(fmt::format(
        "predictions is '{}', the file {}, which would be replaced: name another one", predictions, use));
}

namespace internal {

void require_like_first(const OutputBatch& batch, const OutputBatch& first) {
  const auto row_type = [](const Array& array) {
    TensorType type = array.type();
    std::vector<int64_t> dims;
    for (int axis = 1; axis < type.shape.rank(); ++axis) dims.push_back(type.shape[axis]);
    return TensorType{type.dtype, Shape(dims)};
  };
  std::set<std::string> names = {"sample", "file"};
  for (const auto& [name, value] : batch)
    if (!names.insert(name).second)
      throw InvalidArgument(fmt::format(
          "output_info '{}' cannot be written: that is the name of another column; choose another", name));
  const bool alike = std::ranges::equal(batch, first, [&](const auto& one, const auto& other) {
    return one.first == other.first && row_type(one.second) == row_type(other.second);
  });
  if (!alike || batch.sample_names.empty() != first.sample_names.empty())
    throw InvalidArgument(
        "model_fn returns other output_info for the last, smaller batch than for the others; it must build "
        "the same model each time");
}

}  // namespace internal
}  // namespace mox
