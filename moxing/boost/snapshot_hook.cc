#include "moxing/boost/snapshot_hook.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "moxing/boost/snapshots.h"
#include "moxing/hooks/interval.h"
#include "moxing/job/distributed.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/log.h"

namespace mox {
namespace {

// Of so many steps the passes that they have completed.
using CompletedPasses = FunctionRef<int64_t(int64_t steps)>;

// Whether a snapshot follows step `step`, where the clock has no say.
bool is_due(const SnapshotHookOptions& options, int64_t step, CompletedPasses passes) {
  if (options.until_step > 0 && step > options.until_step) return false;
  if (options.from_epoch > 0 && passes(step) < options.from_epoch) return false;
  if (options.every_n_secs > 0) return true;
  if (options.every_n_steps > 0) return step % options.every_n_steps == 0;
  return passes(step) / options.every_n_epochs > passes(step - 1) / options.every_n_epochs;
}

// How many a run has on disk after `steps` steps, where the clock has no say.
int64_t count_due(const SnapshotHookOptions& options, int64_t steps, CompletedPasses passes) {
  int64_t count = 0;
  for (int64_t step = 1; step <= steps; ++step) count += is_due(options, step, passes);
  return options.keep > 0 ? std::min(count, options.keep) : count;
}

auto passes_of(const Session& session) {
  return [&session](int64_t steps) { return completed_epochs(session.passes(steps)); };
}

class SnapshotHook : public TrainingHook {
 public:
  explicit SnapshotHook(const SnapshotHookOptions& options)
      : options_(options), clock_({.seconds = static_cast<double>(options.every_n_secs)}, "snapshots") {}

  std::string name() const override { return "snapshots"; }

  void after_create_session(Session& session) override {
    const bool by_epochs = options_.every_n_epochs > 0 || options_.from_epoch > 0;
    if (by_epochs && session.steps_per_epoch() <= 0)
      throw Conflict(
          "snapshots.every_n_epochs or snapshots.from_epoch is set, but the size of an epoch of input_fn's "
          "data is not known; use snapshots.every_n_steps or snapshots.every_n_secs");
    clock_.start(session);
    if (rank() != 0) return;
    directory_ = options_.directory;
    if (directory_.empty()) {
      if (session.log_dir().empty())
        throw Conflict(
            "snapshots are asked for, but there is no place for them: set log_dir or snapshots.directory");
      directory_ = session.log_dir() + "/snapshots";
      link_ = DirectoryLink::kRefused;  // it is ours to make
      require_no_link(directory_);
    }
    if (run_.empty()) run_ = fmt::format("{:08x}{:08x}", std::random_device()(), std::random_device()());
    refuse_those_of_others();
    boost::delete_snapshots_after(directory_, session.global_step(), link_);
    if (!session.stop_requested() &&
        (options_.until_step == 0 || session.global_step() < options_.until_step))
      refuse_other_variables(session);
  }

  void after_run(Session& session, const StepResult&) override {
    if (rank() != 0 || !is_due(options_, session.global_step(), passes_of(session))) return;
    if (options_.every_n_secs > 0 && !clock_.is_due(session)) return;
    std::vector<NamedArray> variables;
    for (const std::string& name : session.trained_variable_names())
      variables.push_back({name, session.variable(name)});
    for (const NamedArray& variable : variables)
      for (const float value : variable.value.values<float>())
        if (!std::isfinite(value))
          throw NumericError(
              fmt::format("the variable '{}' is not finite after global step {}, so no snapshot "
                          "is written of it",
                          variable.name, session.global_step()));
    boost::write_snapshot(directory_, session.global_step(), variables,
                          {.keep = options_.keep, .run = run_, .link = link_});
  }

  void end(Session& session) override {
    if (rank() != 0 || session.failed() || options_.every_n_secs > 0 ||
        count_due(options_, session.global_step(), passes_of(session)) != 0)
      return;
    log_warning(fmt::format(
        "no snapshot was written: the run ended at step {}, before the first that is due{}",
        session.global_step(),
        options_.from_epoch > 0 ? fmt::format(" (snapshots.from_epoch is {})", options_.from_epoch) : ""));
  }

  std::string save_state() const override {
    return run_.empty() ? "" : nlohmann::json({{"run", run_}}).dump();
  }
  void restore_state(const std::string& state) override {
    try {
      run_ = parse_json(state).at("run").get<std::string>();
    } catch (const std::exception& error) {
      throw DataError(fmt::format("the state of the snapshots hook is damaged: {}", error.what()));
    }
  }

 private:
  void refuse_those_of_others() const {
    for (const boost::SnapshotFile& file : boost::list_snapshots(directory_)) {
      const SafetensorsReader reader(file.path);
      const auto run = reader.metadata().find("run");
      if (run == reader.metadata().end() || run->second != run_)
        throw Conflict(fmt::format(
            "'{}' is of another run: the snapshots of two runs are not mixed. Delete them, or give this run "
            "another log_dir or snapshots.directory",
            file.path));
    }
  }

  // Those that are there and those to come make one basis.
  void refuse_other_variables(const Session& session) const {
    const std::vector<std::string> names = session.trained_variable_names();
    std::vector<Shape> shapes;
    for (const std::string& name : names) shapes.push_back(session.variable(name).shape());
    const boost::WeightLayout trained(names, shapes);
    for (const boost::SnapshotFile& file : boost::list_snapshots(directory_)) {
      const std::string difference =
          boost::layout_of_snapshot(SafetensorsReader(file.path)).difference(trained);
      if (!difference.empty())
        throw Conflict(fmt::format(
            "the snapshot '{}' has other variables than this run trains now: {}. A basis is made of snapshots "
            "of the same ones: train those of before (freeze, var_scopes, parameter groups), or delete the "
            "snapshots, or give this run another snapshots.directory",
            file.path, difference));
    }
  }

  const SnapshotHookOptions options_;
  IntervalClock clock_;  // of seconds; rank 0 alone asks it
  std::string directory_;
  DirectoryLink link_ = DirectoryLink::kFollowed;  // in place of directory_
  std::string run_;                                // tells this run's snapshots from those of others
};

}  // namespace

std::shared_ptr<Hook> snapshot_hook(const SnapshotHookOptions& options) {
  const auto intervals = {options.every_n_epochs, options.every_n_steps, options.every_n_secs};
  const auto is_set = [](int64_t interval) { return interval > 0; };
  if (std::min(intervals) < 0 || std::ranges::count_if(intervals, is_set) != 1)
    throw InvalidArgument(fmt::format(
        "snapshots: set every_n_epochs, every_n_steps or every_n_secs, one of the three; got {}, {} and {}",
        options.every_n_epochs, options.every_n_steps, options.every_n_secs));
  if (options.from_epoch < 0 || options.keep < 0 || options.until_step < 0)
    throw InvalidArgument(
        fmt::format("snapshots: from_epoch {} and keep {} must be >= 0", options.from_epoch, options.keep));
  return std::make_shared<SnapshotHook>(options);
}

int64_t count_snapshots(const SnapshotHookOptions& options, int64_t steps, double steps_per_epoch) {
  if (options.every_n_secs > 0) return -1;
  return count_due(options, steps, [=](int64_t done) { return completed_epochs(done, steps_per_epoch); });
}

}  // namespace mox
