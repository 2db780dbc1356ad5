#include "moxing/engine/session/starting_point.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/checkpoint/checkpoint_broadcast.h"
#include "moxing/config/flags.h"
#include "moxing/config/given_by_user.h"
#include "moxing/config/options.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

// A training from initial values whose options say what is taken of a checkpoint: one was meant, and none is
// named. What the program sets itself is for those who name one.
void refuse_idle_selection(const RestoreSelection& selection) {
  const std::pair<const char*, bool> options[] = {{"checkpoint_include_patterns", !selection.include.empty()},
                                                  {"checkpoint_exclude_patterns", !selection.exclude.empty()},
                                                  {"checkpoint_rename", !selection.rename.empty()},
                                                  {"on_shape_mismatch", selection.initialises_other_shapes}};
  for (const auto& [option, is_set] : options)
    if (is_set && internal::is_given_by_user(option))
      throw ConfigError(
          fmt::format("{} is set ({}), but the training begins with initial values, so it would have no "
                      "effect: name the checkpoint to start from (checkpoint_path), or leave it out",
                      option, option_origin(option)));
}

// What a training was given to start from and does not; "" if there is nothing of it.
std::string passed_over(const RunSettings& settings, bool is_checkpoint_taken) {
  std::string names;
  if (!settings.places.checkpoint_path.empty() && !is_checkpoint_taken)
    names = fmt::format("checkpoint_path '{}'", settings.places.checkpoint_path);
  if (settings.run_mode == ModeKeys::TRAIN && settings.initial.variables)
    names += (names.empty() ? "" : " and ") + (settings.initial.name.empty()
                                                   ? "what the program gives (RunSpec::starting_variables)"
                                                   : settings.initial.name);
  return names;
}

StartingPoint find_on_disk(const RunSettings& settings) {
  StartingPoint start;
  // A training goes on where it stopped. What is evaluated or predicts is what was asked for by name.
  const bool is_named = settings.run_mode != ModeKeys::TRAIN && !settings.places.checkpoint_path.empty();
  if (!settings.places.log_dir.empty() && !is_named) {
    // Those who use what was trained take the best state, if the run wanted that.
    const bool is_used = settings.run_mode != ModeKeys::TRAIN && latest_checkpoint(settings.places.log_dir);
    if (auto latest = is_used ? load_trained(settings.places.log_dir, &start.path)
                              : load_latest_checkpoint(settings.places.log_dir, &start.path)) {
      start.kind = StartingPoint::Kind::kContinued;
      start.checkpoint = *std::move(latest);
      if (const std::string other = passed_over(settings, false); !other.empty())
        log_info(
            fmt::format("continuing from '{}'; {} is not read: it is where a training begins whose "
                        "log_dir holds no checkpoint (to begin anew from it, give another log_dir)",
                        start.path, other));
      return start;
    }
  }
  const bool trains = settings.run_mode == ModeKeys::TRAIN;
  if (!settings.places.checkpoint_path.empty()) {
    start.kind = StartingPoint::Kind::kWarmStart;
    start.checkpoint = load_trained(settings.places.checkpoint_path, &start.path);
    if (const std::string other = passed_over(settings, true); !other.empty())
      log_info(fmt::format("starting from '{}'; {} is not read: checkpoint_path comes before it", start.path,
                           other));
  } else if (trains && settings.initial.variables) {
    start.kind = StartingPoint::Kind::kWarmStart;
    StartingVariables given = settings.initial.variables();
    start.path = given.origin;
    start.checkpoint.variables = std::move(given.variables);
  }
  if (trains && start.kind == StartingPoint::Kind::kWarmStart)
    start.left_out = select_variables(settings.initial.restore, start.path, &start.checkpoint.variables);
  if (trains && start.kind == StartingPoint::Kind::kInitial) refuse_idle_selection(settings.initial.restore);
  return start;
}

}  // namespace

StartingPoint find_starting_point(const RunSettings& settings) {
  Communicator& ranks = job();
  if (ranks.size() == 1) return find_on_disk(settings);
  StartingPoint start;
  if (ranks.rank() == 0) start = find_on_disk(settings);
  int kind = static_cast<int>(start.kind);
  ranks.broadcast(std::as_writable_bytes(std::span(&kind, 1)));
  start.kind = static_cast<StartingPoint::Kind>(kind);
  start.path = ranks.broadcast_text(start.path);
  if (start.kind != StartingPoint::Kind::kInitial) broadcast_checkpoint(ranks, &start.checkpoint);
  return start;
}

}  // namespace mox::internal
