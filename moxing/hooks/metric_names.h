// The names of metrics: those that a line of metrics.jsonl has for other fields, and what an evaluation calls
// a value that is no mean over samples.
#pragma once

#include <string_view>

namespace mox::internal {

inline constexpr std::string_view kStepField = "step";
inline constexpr std::string_view kSpeedField = "samples_per_second";
inline constexpr std::string_view kLearningRateField = "learning_rate";
inline constexpr std::string_view kEvaluationField = "evaluation";
inline constexpr std::string_view kSamplesField = "samples";  // that were measured, or predicted

inline constexpr std::string_view kReservedMetricNames[] = {kStepField, kSpeedField, kLearningRateField,
                                                            kEvaluationField, kSamplesField};

// Behind the name of a value of log_info.
inline constexpr std::string_view kMeanOfBatches = " (mean of batches)";

}  // namespace mox::internal
