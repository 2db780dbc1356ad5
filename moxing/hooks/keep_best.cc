#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/checkpoint/checkpoint_writer.h"
#include "moxing/console/console.h"
#include "moxing/hooks/evaluation_data.h"
#include "moxing/hooks/hook_states.h"
#include "moxing/hooks/hooks.h"
#include "moxing/hooks/internal/late_start_hook.h"
#include "moxing/hooks/internal/metric_monitor.h"
#include "moxing/job/distributed.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/data/content_sample.h"

namespace mox {
namespace {

// In the state of the best checkpoint: the mark, and EvaluationData::evaluation_data, which checkpoints of
// before have not.
constexpr const char* kMark = "best";
constexpr const char* kEvaluationData = "evaluation_data";

class KeepBestHook : public internal::LateStartHook {
 public:
  explicit KeepBestHook(const KeepBestOptions& options) : options_(options) {
    if (options.metric.empty()) throw InvalidArgument("keep_best: the name of the metric is empty");
  }

  std::string name() const override { return "keep_best"; }
  std::string save_state() const override { return nlohmann::json({{"metric", options_.metric}}).dump(); }
  void restore_state(const std::string&) override { is_continued_ = true; }

  void end(Session& session) override {
    LateStartHook::end(session);
    if (writer_) writer_->wait();
    if (session.failed() || session.interrupted()) return;
    if (!best_ && evaluations_ > 0 && rank() == 0)
      log_warning(
          fmt::format("keep_best: {} was no finite number in any of {} evaluations: no state is kept{}",
                      options_.metric, evaluations_, options_.restore ? ", and the last one stays" : ""));
    if (!best_) return;
    session.console().print(fmt::format("best {}: {:.6g} at global step {}{}", options_.metric, best_->value,
                                        best_->step,
                                        directory_.empty() ? "" : fmt::format(", kept in '{}'", directory_)));
    if (options_.restore && best_->step != session.global_step()) restore(session);
  }

 private:
  struct Best {
    double value = 0;
    int64_t step = 0;
  };

  void start(Session& session) override {
    larger_is_better_ =
        internal::direction_to_follow(session, "keep_best", options_.metric, options_.larger_is_better) ==
        metrics::Direction::kLargerIsBetter;
    is_restoring_ = false;
    evaluations_ = 0;
    best_.reset();
    in_memory_.clear();
    if (const auto* data = dynamic_cast<const internal::EvaluationData*>(&session)) {
      evaluation_data_ = data->evaluation_data();
      data_are_others_ = data->evaluation_data_are_others();
    }
    directory_ = session.log_dir().empty() ? "" : best_directory(session.log_dir());
    if (!directory_.empty()) find_kept(session.global_step());
    is_continued_ = false;
  }

  void add(Session& session, const Metrics& metrics) override {
    if (is_restoring_) return;
    const double value = internal::value_of(metrics, options_.metric);
    const auto direction =
        larger_is_better_ ? metrics::Direction::kLargerIsBetter : metrics::Direction::kSmallerIsBetter;
    ++evaluations_;
    if (!std::isfinite(value) || (best_ && !metrics::is_better(direction, value, best_->value))) return;
    keep(session, value);
  }

  // What an earlier start of the run has kept. Rank 0 looks.
  void find_kept(int64_t global_step) {
    std::string found;
    if (rank() == 0) {
      writer_ = std::make_unique<CheckpointWriter>(directory_, CheckpointRetention{.keep_last = 1},
                                                   DirectoryLink::kRefused);
      std::string path;
      if (auto kept = load_latest_checkpoint(directory_, &path))
        if (const auto mark = best_mark_of(*kept, path)) {
          found = what_is_kept(*kept, *mark, global_step);
          if (!found.empty() && mark->restore != options_.restore) mark_anew(*std::move(kept), *mark);
        }
    }
    found = broadcast(found);
    if (found.empty()) return;
    const auto json = parse_json(found);
    best_ = Best{.value = json.at("value").get<double>(), .step = json.at("step").get<int64_t>()};
  }

  std::string what_is_kept(const Checkpoint& kept, const BestMark& mark, int64_t global_step) {
    if (!is_continued_)
      throw Conflict(
          fmt::format("'{}' holds the best state of another run, which this one would replace. Delete it, or "
                      "give this run another log_dir",
                      directory_));
    if (mark.metric != options_.metric || mark.larger_is_better != larger_is_better_) {
      log_warning(fmt::format("'{}' holds the best state by {}; the next evaluation replaces it by one by {}",
                              directory_, mark.metric, options_.metric));
      replaces_step_ = kept.global_step;
      return "";
    }
    if (is_of_other_data(kept)) {
      log_warning(fmt::format(
          "'{}' holds the best state by evaluations of other data than those of now; the next evaluation "
          "replaces it. Copy it before if it is wanted",
          directory_));
      replaces_step_ = kept.global_step;
      return "";
    }
    // After a crash the run comes by that state again; with other options, or other data, it does not.
    if (kept.global_step > global_step)
      log_warning(fmt::format(
          "'{}' holds the best state of global step {}, and this run goes on from step {}: that state counts "
          "until one is better. Delete it if the run is to go on otherwise than it did",
          directory_, kept.global_step, global_step));
    return nlohmann::json({{"value", mark.value}, {"step", kept.global_step}}).dump();
  }

  // Those who use the log_dir go by the mark, and what this start says counts, though an earlier one has
  // found the state.
  void mark_anew(Checkpoint kept, BestMark mark) {
    mark.restore = options_.restore;
    kept.state[kMark] = to_json(mark);
    writer_->submit(std::move(kept));
  }

  bool is_of_other_data(const Checkpoint& kept) const {
    const auto mark = kept.state.find(kEvaluationData);
    if (mark == kept.state.end() || !evaluation_data_) return data_are_others_;
    try {
      return !are_of_the_same_data(parse_json(mark->second, directory_).get<std::string>(),
                                   *evaluation_data_);
    } catch (const nlohmann::json::exception& error) {
      throw DataError(fmt::format("'{}' holds a best state of step {} that no run has written: {}. Delete it",
                                  directory_, kept.global_step, error.what()));
    }
  }

  void keep(Session& session, double value) {
    const int64_t before = best_ ? best_->step : replaces_step_;
    best_ = Best{.value = value, .step = session.global_step()};
    if (directory_.empty()) {
      in_memory_ = variables_of(session);
      return;
    }
    if (!writer_) return;
    Checkpoint checkpoint;
    checkpoint.global_step = best_->step;
    checkpoint.variables = variables_of(session);
    checkpoint.state[kMark] = to_json({.metric = options_.metric,
                                       .larger_is_better = larger_is_better_,
                                       .value = value,
                                       .restore = options_.restore});
    if (evaluation_data_) checkpoint.state[kEvaluationData] = nlohmann::json(*evaluation_data_).dump();
    // Among them how the data were read and with which options the model was made: a best state that has been
    // carried elsewhere predicts, too.
    if (const auto* hooks = dynamic_cast<const internal::HookStates*>(&session))
      checkpoint.state["hooks"] = nlohmann::json(hooks->hook_states()).dump();
    writer_->submit(std::move(checkpoint));
    replaces_step_ = -1;
    if (before <= best_->step) return;
    // A run that went on from before the best one: the writer would keep the later step, too.
    writer_->wait();
    delete_checkpoints_but(directory_, best_->step);
  }

  static std::vector<NamedArray> variables_of(const Session& session) {
    std::vector<NamedArray> variables;
    for (const std::string& name : session.variable_names())
      variables.push_back({name, session.variable(name)});
    return variables;
  }

  void restore(Session& session) {
    const bool is_read = !directory_.empty() && rank() == 0;
    const std::vector<NamedArray> values = is_read ? load_checkpoint(directory_).variables : in_memory_;
    // Rank 0 has read what the others get; without a directory all ranks have kept the same.
    for (const std::string& name : session.variable_names()) {
      Array value = session.variable(name);
      for (const NamedArray& kept : values)
        if (kept.name == name) value = kept.value.clone();
      if (!directory_.empty()) broadcast(value);
      session.set_variable(name, value);
    }
    session.console().print(
        fmt::format("the state of global step {} is restored for the last evaluation", best_->step));
    is_restoring_ = true;
    session.evaluate();
  }

  const KeepBestOptions options_;
  bool larger_is_better_ = false, is_continued_ = false, is_restoring_ = false;
  std::optional<std::string> evaluation_data_;  // see EvaluationData
  bool data_are_others_ = false;                // than those of the checkpoint that the run goes on from
  std::string directory_;                       // "": in memory
  std::unique_ptr<CheckpointWriter> writer_;    // on rank 0
  std::vector<NamedArray> in_memory_;
  std::optional<Best> best_;
  int64_t evaluations_ = 0;
  int64_t replaces_step_ = -1;  // of a kept state that counts no more
};

}  // namespace

std::shared_ptr<Hook> keep_best_hook(const KeepBestOptions& options) {
  return std::make_shared<KeepBestHook>(options);
}

}  // namespace mox
