#include "moxing/engine/session/internal/trained_data.h"

#include <fmt/format.h>

#include "runtime/base/log.h"
#include "runtime/data/shared_content.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

void warn(const SharedContent& shared, const std::string& trained) {
  const std::string& trained_name = shared.trained_name;
  const std::string names = shared.name.empty()
                                ? ""
                                : fmt::format(" (the first: '{}'{})", shared.name,
                                              trained_name.empty() || trained_name == shared.name
                                                  ? ""
                                                  : fmt::format(", in training '{}'", trained_name));
  log_warning(fmt::format(
      "the data of input_fn(eval) are those {}: {} of {} samples that were looked at are the same{}. What an "
      "evaluation measures on them is not how well others are answered",
      trained, shared.same, shared.looked_at, names));
}

}  // namespace

void warn_of_trained_data(const Dataset& training, const Dataset& evaluation) {
  if (job().rank() != 0) return;
  if (const auto shared = shared_content(training, evaluation)) warn(*shared, "of the training");
}

void warn_of_trained_data(const std::vector<std::string>& training, const std::string& checkpoint,
                          const Dataset& evaluation) {
  if (job().rank() != 0) return;
  if (const auto shared = shared_content(training, evaluation))
    warn(*shared, fmt::format("that the model in '{}' was trained on", checkpoint));
}

}  // namespace mox::internal
