#include "moxing/engine/session/internal/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "moxing/config/remote_places.h"
#include "moxing/console/stop_signal.h"
#include "moxing/engine/session/internal/not_finite_outputs.h"
#include "moxing/engine/session/internal/output_hook.h"
#include "moxing/engine/session/internal/pass_session.h"
#include "moxing/engine/session/internal/results_file.h"
#include "moxing/engine/session/internal/shared_findings.h"
#include "moxing/engine/session/internal/trained_data.h"
#include "moxing/engine/session/run.h"
#include "moxing/file/jobs/staging.h"
#include "moxing/job/facts.h"
#include "moxing/prediction/predictions_file.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/data/findings.h"
#include "runtime/data/shared_content.h"
#include "runtime/data/shuffled.h"
#include "runtime/interruption/interruption.h"
#include "runtime/job/agreement.h"
#include "runtime/job/job.h"
#include "runtime/replicas/lane_threads.h"

namespace mox::internal {
namespace {

void mention_speed(const char* done, int64_t samples, double seconds) {
  log_info(fmt::format("{} {} samples in {} ({:.1f} sample/sec)", done, samples, format_duration(seconds),
                       static_cast<double>(samples) / std::max(seconds, 1e-9)));
}

// Where predictions go: the file, and the program's function.
class Receiver {
 public:
  Receiver(const RunSpec& spec, const RunSettings& settings)
      : output_fn_(spec.output_fn), every_(std::max<int64_t>(settings.intervals.output.steps, 1)) {
    const bool writes = !settings.predictions.file.empty() && job().rank() == 0;
    if (!writes) return;
    staging_.emplace(settings.predictions.file, local_places());
    file_ = PredictionsFile::open(staging_->path());
  }

  void take(OutputBatch batch) {
    not_finite_.look_at(batch);
    if (file_) file_->add(batch);
    if (!output_fn_) return;
    pending_.push_back(std::move(batch));
    if (std::ssize(pending_) == every_) flush();
  }

  void finish() {
    flush();
    if (file_) {
      file_->finish();
      staging_->send();
    }
    not_finite_.report();
  }

 private:
  void flush() {
    if (pending_.empty()) return;
    output_fn_(pending_);
    pending_.clear();
  }

  OutputFn output_fn_;
  int64_t every_;
  std::optional<file::Staging> staging_;
  std::unique_ptr<PredictionsFile> file_;
  std::vector<OutputBatch> pending_;
  NotFiniteOutputs not_finite_;
};

// Brings the batches of all ranks into the order of the data. A round has one batch of each rank, except for
// the last one.
class Gathering {
 public:
  Gathering(Receiver& receiver, bool on_rank_zero) : receiver_(receiver), on_rank_zero_(on_rank_zero) {}

  // This rank's batch of the round, or an empty one. False if no rank had any. The ranks do not learn of a
  // signal at the same time: `stops` of one of them counts for all, from this round on.
  bool add_round(OutputBatch own, bool stops) {
    const int64_t before = samples_;
    stops_ |= stops;
    if (job().size() == 1) {
      if (own.empty()) return false;
      place(own);
      receiver_.take(std::move(own));
    } else if (on_rank_zero_) {
      gather(own);
    } else {
      auto sizes = job().allgather_equal(fmt::format("{}{:20}", wish(), own.samples()));
      for (std::string& sent : sizes) sent = without_wish(sent);
      if (stops_) return false;
      for (size_t rank = 0; rank < sizes.size(); ++rank) {
        if (static_cast<int>(rank) == job().rank()) own.first_sample = samples_;
        samples_ += std::stoll(sizes[rank]);
      }
      if (!own.empty()) receiver_.take(std::move(own));
    }
    return samples_ > before;
  }

  int64_t samples() const { return samples_; }  // of all ranks
  bool stops() const { return stops_; }         // the same on all ranks after a round

 private:
  // The first letter of what a rank sends.
  static constexpr char kGoesOn = '-', kStops = 's';
  char wish() const { return stops_ ? kStops : kGoesOn; }
  std::string without_wish(const std::string& sent) {
    stops_ |= sent.at(0) == kStops;
    return sent.substr(1);
  }

  void place(OutputBatch& batch) {
    batch.first_sample = samples_;
    samples_ += batch.samples();
  }

  void gather(const OutputBatch& own) {
    auto all = job().allgather(wish() + (own.empty() ? std::string() : own.to_bytes()));
    for (std::string& sent : all) sent = without_wish(sent);
    if (stops_) return;  // the batches of this round are not those of all ranks
    size_t last = 0;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].empty()) continue;
      if (rank > last)
        throw DataError(
            fmt::format("rank {} (host {}) has come to the end of the data of input_fn(predict) before rank "
                        "{}; all ranks need the same data, in the same order",
                        last, job().host(static_cast<int>(last)), rank));
      last = rank + 1;
      OutputBatch batch = OutputBatch::from_bytes(all[rank]);
      place(batch);
      if (job().rank() == 0) receiver_.take(std::move(batch));
    }
  }

  Receiver& receiver_;
  bool on_rank_zero_;
  bool stops_ = false;
  int64_t samples_ = 0;
};

std::string of_interrupted_evaluation(const StopSignal& signal, int64_t samples) {
  return fmt::format(
      "interrupted by {} after {} samples{}: there are no metrics, and results.json is as it was; the same "
      "command evaluates again, from the first sample",
      signal.name(), samples, job().size() > 1 ? " of this rank" : "");
}

std::string of_interrupted_prediction(const StopSignal& signal, int64_t samples,
                                      const std::string& predictions) {
  return fmt::format("interrupted by {} after {} samples{}",
                     signal.received() != 0 ? signal.name() : "a signal to another rank", samples,
                     predictions.empty() ? "" : fmt::format(": '{}' is not written", predictions));
}

void warn_of_shuffled_predictions(const Dataset& dataset) {
  if (!is_shuffled(dataset) || job().rank() != 0) return;
  log_warning(fmt::format(
      "input_fn(predict) gives its data shuffled ({}): the first row of the predictions is not of the first "
      "sample of the data, and so on. Leave shuffle out in this mode",
      dataset.describe()));
}

// False at the end of the data, and where a signal ends the waiting for it.
bool next_batch(Pipeline& pipeline, const StopSignal& signal, Batch* batch, bool* stops) {
  const Interruptible waiting(signal.wish());
  try {
    return pipeline.next(batch);
  } catch (const Interrupted&) {
    *stops = true;
    return false;
  }
}

// Until the data of all ranks end, a hook or a signal stops.
void predict_all(Pipeline& pipeline, ModelCompiler& compiler, LaneThreads& lane, PassSession& session,
                 const StopSignal& signal, Gathering& gathering) {
  bool goes_on = true;
  do {
    Batch batch;
    OutputBatch outputs;
    bool stops = signal.received() != 0;
    if (!stops && next_batch(pipeline, signal, &batch, &stops)) {
      CompiledModel& model = compiler.for_batch(batch);
      session.before_batch();
      lane.run([&](int) { model.instance->run({.components = batch.components}); });
      outputs = copy_outputs(model);
      outputs.sample_names = std::move(batch.names);
      goes_on = session.after_batch(model, batch.size);
    }
    goes_on &= gathering.add_round(std::move(outputs), stops);
  } while (goes_on && !gathering.stops());
}

// Whether a signal has ended `work` before its end, as making a model may be that no other rank waits for.
bool is_interrupted(const StopSignal& signal, FunctionRef<void()> work) {
  std::optional<Interruptible> interruptible;
  if (job().size() == 1) interruptible.emplace(signal.wish());
  try {
    work();
  } catch (const Interrupted&) {
    return true;
  }
  return false;
}

RunResult interrupted_at(const PassSession& session) {
  return {.global_step = session.global_step(), .stop_reason = "interrupted", .interrupted = true};
}

}  // namespace

RunResult run_evaluation(const RunSpec& spec, const RunSettings& settings, Console& console) {
  // First: also one that comes while the model compiles ends in good order.
  const StopSignal signal(job().size() > 1);
  Start start = start_pass(settings);
  const Team team(settings.cores.threads);
  const EnteredTeam entered(team);
  LaneThreads lane(1, team);
  PassSession session(spec, start, console);
  std::optional<Evaluator> evaluator;
  if (is_interrupted(signal, [&] {
        evaluator.emplace(spec, start.settings, start.store, team, lane, session.begin());
      })) {
    console.print(of_interrupted_evaluation(signal, 0), Console::Style::kStrong);
    return interrupted_at(session);
  }
  if (settings.print_plan) {
    console.print(evaluator->compiler().for_signature(evaluator->dataset().signature()).plan->describe());
    return {.stop_reason = "print_plan"};
  }
  if (evaluator->samples())
    warn_of_trained_data(contents_of_cursor(start.restored.data_cursor), start.point.path,
                         *evaluator->samples());
  Evaluation evaluation;
  session.run(evaluator->dataset(), [&] {
    try {
      const Interruptible waiting(signal.wish());
      evaluation = evaluator->evaluate([&] { return signal.received() != 0; }, &session);
    } catch (const EvaluationGivenUp&) {
      // Ranks do not learn of a signal at the same batch: the first ends the job.
      if (job().size() > 1)
        stop_job("was " + of_interrupted_evaluation(signal, session.samples()), kExitInterrupted);
      return session.interrupt();
    }
    session.set_evaluated_samples(evaluation.samples);
    session.after_evaluation(evaluation.numbers);
  });
  if (session.interrupted()) {
    console.print(of_interrupted_evaluation(signal, session.samples()), Console::Style::kStrong);
    return interrupted_at(session);
  }
  mention_speed("evaluated", evaluation.samples, session.seconds());
  if (job().rank() == 0)
    keep_results({.checkpoint = start.point.path,
                  .stored_checkpoint = stored_place_of(settings, start.point.path),
                  .global_step = session.global_step(),
                  .samples = evaluation.samples,
                  .seconds = session.seconds(),
                  .evaluation = evaluation});
  console.print(format_test_lines(evaluation), Console::Style::kStrong);
  return {.global_step = session.global_step(),
          .stop_reason = session.stop_reason(),
          .interrupted = false,
          .evaluation = evaluation.numbers};
}

RunResult run_prediction(const RunSpec& spec, const RunSettings& settings, Console& console) {
  // Ended by a signal at once, the process would leave what it has written of the file.
  const StopSignal signal(job().size() > 1);
  // First: a file that cannot be made is said before any work. It is gone again while input_fn looks at what
  // may be the same directory.
  if (!settings.print_plan) Receiver(spec, settings);
  Start start = start_pass(settings);
  const Team team(settings.cores.threads);
  const EnteredTeam entered(team);
  LaneThreads lane(1, team);
  const Dataset dataset = one_epoch(spec, settings, ModeKeys::PREDICT, settings.limits.predict_steps);
  warn_of_shuffled_predictions(dataset);
  PassSession session(spec, start, console);
  ModelCompiler compiler(spec.model_fn, ModeKeys::PREDICT, start.store, team, start.settings.arithmetic,
                         session.begin());
  const CompiledModel* first = nullptr;
  if (is_interrupted(signal, [&] { first = &compiler.for_signature(dataset.signature()); })) {
    console.print(of_interrupted_prediction(signal, 0, settings.predictions.file), Console::Style::kStrong);
    return interrupted_at(session);
  }
  if (settings.print_plan) {
    console.print(first->plan->describe());
    return {.stop_reason = "print_plan"};
  }
  Pipeline pipeline(dataset, {.seed = settings.seed,
                              .threads = settings.data.threads,
                              .prefetch_batches = settings.data.prefetch_batches,
                              .memory_budget = settings.data.memory,
                              .group_size = job().size(),
                              .group_first = job().rank(),
                              .sample_names = true});
  require_agreement(job(), facts_of_data(dataset));
  Receiver receiver(spec, settings);
  Gathering gathering(receiver, settings.predictions.gathers);
  session.run(dataset, [&] {
    predict_all(pipeline, compiler, lane, session, signal, gathering);
    share_findings(job(), dataset, take_findings(dataset));
    if (gathering.stops()) return session.interrupt();
    // Before a file of before is replaced.
    if (gathering.samples() == 0)
      throw DataError(fmt::format("the data of input_fn(predict) has no samples ({})", dataset.describe()));
    receiver.finish();
  });
  if (gathering.stops()) {
    console.print(of_interrupted_prediction(signal, gathering.samples(), settings.predictions.file),
                  Console::Style::kStrong);
    return interrupted_at(session);
  }
  mention_speed("predicted", gathering.samples(), session.seconds());
  if (job().rank() == 0)
    keep_results({.mode = ModeKeys::PREDICT,
                  .checkpoint = start.point.path,
                  .stored_checkpoint = stored_place_of(settings, start.point.path),
                  .global_step = session.global_step(),
                  .samples = gathering.samples(),
                  .seconds = session.seconds(),
                  .predictions = settings.predictions.file});
  if (!settings.predictions.file.empty())
    console.print(
        fmt::format("predictions of {} samples: {}", gathering.samples(), settings.predictions.file));
  return {.global_step = session.global_step(), .stop_reason = session.stop_reason()};
}

}  // namespace mox::internal
