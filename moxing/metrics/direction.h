// Which way a metric gets better.
#pragma once

#include <optional>
#include <string_view>

namespace mox::metrics {

enum class Direction { kLargerIsBetter, kSmallerIsBetter };

// "max" and "min".
std::string_view to_string(Direction direction);
// The other way round; throws InvalidArgument for another text.
Direction direction_from_string(std::string_view text);

inline bool is_better(Direction direction, double value, double than) {
  return direction == Direction::kLargerIsBetter ? value > than : value < than;
}

// The direction that the name itself tells, by the field's usual words between underscores, slashes and the
// like, in any case: loss, error, mae, rmse, perplexity, ... get better downwards; accuracy, precision, auc,
// f1, ... upwards. Empty for a name without such a word, or with words of both kinds.
std::optional<Direction> direction_of_name(std::string_view name);

}  // namespace mox::metrics
