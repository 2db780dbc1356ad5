// The fields that a line of metrics.jsonl has beside the metrics.
#pragma once

#include <string_view>

namespace mox::internal {

inline constexpr std::string_view kStepField = "step";
inline constexpr std::string_view kSpeedField = "samples_per_second";
inline constexpr std::string_view kLearningRateField = "learning_rate";
inline constexpr std::string_view kEvaluationField = "evaluation";

inline constexpr std::string_view kReservedMetricNames[] = {kStepField, kSpeedField, kLearningRateField,
                                                            kEvaluationField};

}  // namespace mox::internal
