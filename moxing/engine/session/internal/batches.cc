#include "moxing/engine/session/internal/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "moxing/config/options.h"
#include "runtime/base/error.h"
#include "runtime/refusals/out_of_memory.h"

namespace mox::internal {

Dataset data_of(const RunSpec& spec, ModeKeys mode) {
  try {
    return spec.input_fn(mode);
  } catch (...) {
    rethrow_naming_memory(
        [&] { return fmt::format("what input_fn({}) makes", to_string(mode)); },
        "let it keep less: of files that a data set of mox::data names, samples are read when "
        "they are due, within data_memory_mb");
  }
}

Dataset batches_of(const Dataset& dataset, const RunSettings& settings, ModeKeys mode, int64_t size) {
  if (settings.data.auto_batch) return dataset.batch(size);
  const auto is_scalar = [](const TensorType& type) { return type.shape.rank() == 0; };
  if (std::ranges::none_of(dataset.signature(), is_scalar)) return dataset;
  std::string elements;
  for (const TensorType& type : dataset.signature())
    elements += (elements.empty() ? "" : ", ") + to_string(type);
  throw ConfigError(fmt::format(
      "auto_batch is false ({}), so that input_fn({}) has to return batches, and its elements are ({}), of "
      "which a single number has no axis of samples: end the data with .batch(size), or leave auto_batch out",
      option_origin("auto_batch"), to_string(mode), elements));
}

}  // namespace mox::internal
