#include "moxing/engine/session/session_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "moxing/checkpoint/checkpoint_broadcast.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"

namespace mox::internal {

namespace {

nlohmann::json to_json(const LossScaleState& state) {
  return {{"scale", state.scale},
          {"steps_in_a_row", state.steps_in_a_row},
          {"skipped_steps", state.skipped_steps},
          {"skipped_in_a_row", state.skipped_in_a_row}};
}

LossScaleState loss_scale_from(const nlohmann::json& json) {
  const LossScaleState state{.scale = json.at("scale").get<double>(),
                             .steps_in_a_row = json.at("steps_in_a_row").get<int64_t>(),
                             .skipped_steps = json.at("skipped_steps").get<int64_t>(),
                             .skipped_in_a_row = json.at("skipped_in_a_row").get<int64_t>()};
  const bool has_scale = state.scale >= 1 && state.scale <= LossScale::kLargest;
  if ((!has_scale && state.scale != 0) || state.steps_in_a_row < 0 ||
      state.steps_in_a_row >= LossScale::kStepsToDouble || state.skipped_steps < 0 ||
      state.skipped_in_a_row < 0 || state.skipped_in_a_row >= LossScale::kMostSkippedInARow)
    throw DataError(fmt::format("a loss scale of {}", json.dump()));
  return state;
}

InstructionSet instruction_set_from(const nlohmann::json& json) {
  const auto set = instruction_set_from_string(json.get<std::string>());
  if (!set) throw DataError(fmt::format("a set of instructions named {}", json.dump()));
  return *set;
}

std::string describe(const OptimizerIdentity& optimizer) {
  if (optimizer.slots.empty()) return fmt::format("{} (which remembers nothing)", optimizer.name);
  return fmt::format("{} (which remembers {} of each variable)", optimizer.name,
                     fmt::join(optimizer.slots, " and "));
}

}  // namespace

OptimizerIdentity optimizer_identity(const Optimizer& optimizer) {
  OptimizerIdentity identity{std::string(optimizer.name()), {}};
  for (const SlotSpec& slot : optimizer.slots()) identity.slots.push_back(slot.name);
  return identity;
}

void require_same_optimizer(const OptimizerIdentity& before, const Optimizer& now, const std::string& path) {
  const OptimizerIdentity wanted = optimizer_identity(now);
  if (wanted == before) return;
  throw FailedPrecondition(
      fmt::format("the run in '{0}' was trained with the optimizer {1} and cannot go on with {2}. Go on with "
                  "{3}; or train its variables "
                  "with {4} from step 0 in another log_dir, with --checkpoint_path={0}",
                  path, describe(before), describe(wanted), before.name, wanted.name));
}

std::map<std::string, std::string> to_checkpoint_state(const SessionState& state) {
  nlohmann::json hooks = nlohmann::json::object();
  for (const auto& [name, text] : state.hook_states) hooks[name] = text;
  const nlohmann::json optimizer = {{"name", state.optimizer.name}, {"slots", state.optimizer.slots}};
  std::map<std::string, std::string> result = {
      {"optimizer", optimizer.dump()},
      {"seed", std::to_string(state.seed)},
      {"threads", std::to_string(state.threads)},
      {"logical_replicas", std::to_string(state.logical_replicas)},
      {"devices", std::to_string(state.devices)},
      {"processor", nlohmann::json(state.processor).dump()},
      {"arithmetic", nlohmann::json(state.arithmetic).dump()},
      {"learning_rate_multiplier", nlohmann::json(state.learning_rate_multiplier).dump()},
      {"loss_scale", to_json(state.loss_scale).dump()},
      {"data_cursor", nlohmann::json(state.data_cursor).dump()},
      {"hooks", hooks.dump()}};
  if (!state.stage_two.empty()) result["stage_two"] = state.stage_two;
  if (state.elements_taken) result["elements_taken"] = std::to_string(*state.elements_taken);
  if (state.instruction_set)
    result["instruction_set"] = nlohmann::json(to_string(*state.instruction_set)).dump();
  return result;
}

SessionState from_checkpoint_state(const Checkpoint& checkpoint, const std::string& path) {
  SessionState state;
  state.global_step = checkpoint.global_step;
  try {
    const auto optimizer = nlohmann::json::parse(checkpoint.state.at("optimizer"));
    state.optimizer = {optimizer.at("name").get<std::string>(),
                       optimizer.at("slots").get<std::vector<std::string>>()};
    state.seed = nlohmann::json::parse(checkpoint.state.at("seed")).get<uint64_t>();
    state.threads = nlohmann::json::parse(checkpoint.state.at("threads")).get<int>();
    if (checkpoint.state.contains("logical_replicas"))  // there were none before
      state.logical_replicas = nlohmann::json::parse(checkpoint.state.at("logical_replicas")).get<int64_t>();
    if (state.logical_replicas < 1)
      throw DataError(fmt::format("{} logical replicas", state.logical_replicas));
    if (checkpoint.state.contains("devices"))  // there were none before
      state.devices = nlohmann::json::parse(checkpoint.state.at("devices")).get<int>();
    if (checkpoint.state.contains("processor"))  // there was none before
      state.processor = nlohmann::json::parse(checkpoint.state.at("processor")).get<std::string>();
    if (checkpoint.state.contains("instruction_set"))  // there was none before
      state.instruction_set =
          instruction_set_from(nlohmann::json::parse(checkpoint.state.at("instruction_set")));
    if (checkpoint.state.contains("arithmetic"))  // there was none before
      state.arithmetic = nlohmann::json::parse(checkpoint.state.at("arithmetic")).get<std::string>();
    state.learning_rate_multiplier =
        nlohmann::json::parse(checkpoint.state.at("learning_rate_multiplier")).get<double>();
    if (checkpoint.state.contains("loss_scale"))  // there was none before
      state.loss_scale = loss_scale_from(nlohmann::json::parse(checkpoint.state.at("loss_scale")));
    if (const auto stage = checkpoint.state.find("stage_two"); stage != checkpoint.state.end())
      state.stage_two = stage->second;
    state.data_cursor = nlohmann::json::parse(checkpoint.state.at("data_cursor")).get<std::string>();
    if (checkpoint.state.contains("elements_taken"))  // there was none before
      state.elements_taken = nlohmann::json::parse(checkpoint.state.at("elements_taken")).get<int64_t>();
    constexpr int64_t kMost = int64_t{1} << 62;
    if (const int64_t taken = state.elements_taken.value_or(0); taken < 0 || taken > kMost)
      throw DataError(fmt::format("{} elements taken", *state.elements_taken));
    state.hook_states =
        nlohmann::json::parse(checkpoint.state.at("hooks")).get<std::map<std::string, std::string>>();
  } catch (const std::exception& error) {
    throw DataError(
        fmt::format("the checkpoint '{}' holds no training state that this program can continue ({}); give "
                    "it as checkpoint_path "
                    "with another log_dir to start from its variables only",
                    path, error.what()));
  }
  return state;
}

namespace {

StartingPoint find_on_disk(const RunSettings& settings) {
  StartingPoint start;
  // A training goes on where it stopped. What is evaluated or predicts is what was asked for by name.
  const bool is_named = settings.run_mode != ModeKeys::TRAIN && !settings.checkpoint_path.empty();
  if (!settings.log_dir.empty() && !is_named) {
    if (auto latest = load_latest_checkpoint(settings.log_dir, &start.path)) {
      start.kind = StartingPoint::Kind::kContinued;
      start.checkpoint = *std::move(latest);
      if (!settings.checkpoint_path.empty())
        log_info(fmt::format(
            "continuing from '{}'; checkpoint_path '{}' is not read: it is where a training begins whose "
            "log_dir holds no checkpoint (to begin anew from it, give another log_dir)",
            start.path, settings.checkpoint_path));
      return start;
    }
  }
  if (!settings.checkpoint_path.empty()) {
    start.kind = StartingPoint::Kind::kWarmStart;
    start.checkpoint = load_checkpoint(settings.checkpoint_path, &start.path);
    if (settings.run_mode == ModeKeys::TRAIN)
      start.left_out = select_variables(settings.restore, start.path, &start.checkpoint.variables);
  }
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
