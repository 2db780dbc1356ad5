// What an evaluation gathers batch by batch, and what it comes to.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moxing/engine/compile/compiled_model.h"
#include "moxing/hooks/hook.h"
#include "runtime/comm/communicator.h"

namespace mox::internal {

// The results of an evaluation.
struct Evaluation {
  Metrics numbers;  // the values of log_info, then the numbers of the metrics
  std::vector<std::pair<std::string, metrics::Table>> tables;
  int64_t samples = 0;
  std::vector<std::string> without_weight;  // metrics for which all samples have the weight 0
};

// The share of one rank. Means are kept by batch, to be summed in the order of the data; metrics, whose
// states do not depend on the order, by lane.
class EvaluationState {
 public:
  EvaluationState(const CompiledModel& model, int lanes);

  // Makes room for the next `batches` batches of this rank; then `add` takes each of them, `index` counting
  // from 0 within these. Threads: different lanes may call `add` at the same time.
  void expect(size_t batches);
  void add(size_t index, int lane, CompiledModel& model, int64_t samples, int64_t first_sample);

  // All ranks together: each has what all of them have added.
  void gather(Communicator& ranks);
  // What that comes to, the same on all ranks. Throws DataError if there are no samples, or if one rank has
  // more batches than with the data of the others it would have; and what a metric throws.
  Evaluation finish(const Communicator& ranks, const std::string& data);

 private:
  void add_means(const Communicator& ranks, const std::string& data, Evaluation& evaluation) const;
  void add_measures(Evaluation& evaluation);

  EvaluatedValues values_;
  metrics::NamedMetrics metrics_;
  std::vector<TensorType> signature_;
  std::vector<double> records_;                      // of each batch: its samples and the values of the means
  size_t expected_ = 0;                              // where the records of the batches under way begin
  std::vector<std::vector<metrics::State>> states_;  // by lane and metric
  std::vector<std::vector<double>> all_records_;     // gathered: by rank
  std::vector<metrics::State> all_states_;           // and by metric
};

// Which way the number of a name gets better, by what the spec says, by its metric or by its name.
class ValueDirections {
 public:
  explicit ValueDirections(const ModelSpec& spec);
  std::optional<metrics::Direction> of(std::string_view name) const;

 private:
  metrics::NamedMetrics metrics_;
  std::map<std::string, metrics::Direction, std::less<>> said_;
  std::map<std::string, bool, std::less<>> is_loss_;  // of the values of log_info
};

// Throws InvalidArgument if `spec` gives a direction to a name that neither log_info nor a metric has, its
// own or those of `other`, of the other mode: what it means would go by its name.
void require_directed_values(const ModelSpec& spec, const ModelSpec& other);

// The name of the number that an evaluation gives for `name`: another one for a value of log_info that is no
// mean over samples. Throws ConfigError, beginning with `what_says` ("keep_best.metric is") and naming those
// that there are, if it gives none; of a metric whose parts are not known only an evaluation tells.
std::string evaluated_name(const CompiledModel& model, std::string_view what_says, std::string_view name);

// "test loss: 0.3412" and "test accuracy: 0.9123", a line each, then the tables: what a final evaluation
// prints on stdout.
std::string format_test_lines(const Evaluation& evaluation);

}  // namespace mox::internal
