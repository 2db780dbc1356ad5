#include "moxing/engine/session/training_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "moxing/json/parse_json.h"
#include "moxing/json/whole_number.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"

namespace mox::internal {

namespace {

using Json = nlohmann::json;

// What the values of a text are taken to need at most: of a list of nothing but short texts a third of it.
constexpr size_t kMostTimesOfState = 16;

// Whether every checkpoint has it: those of before it was added leave the member as it is.
enum class Since { kFirst, kLater };

// How a member stands in a checkpoint. `write`: its JSON text, or "" where it has no value. `read` throws
// what is wrong with a text.
struct Field {
  const char* key;
  Since since;
  std::string (*write)(const TrainingState& state);
  void (*read)(const std::string& text, TrainingState& state);
};

Json to_json(const OptimizerIdentity& optimizer) {
  return {{"name", optimizer.name}, {"slots", optimizer.slots}};
}
void from_json(const Json& json, OptimizerIdentity& optimizer) {
  optimizer = {json.at("name").get<std::string>(), json.at("slots").get<std::vector<std::string>>()};
}

Json to_json(const LossScaleState& state) {
  return {{"scale", state.scale},
          {"steps_in_a_row", state.steps_in_a_row},
          {"skipped_steps", state.skipped_steps},
          {"skipped_in_a_row", state.skipped_in_a_row}};
}
void from_json(const Json& json, LossScaleState& state) {
  state = {.scale = json.at("scale").get<double>(),
           .steps_in_a_row = count_in(json.at("steps_in_a_row")),
           .skipped_steps = count_in(json.at("skipped_steps")),
           .skipped_in_a_row = count_in(json.at("skipped_in_a_row"))};
  const bool has_scale = state.scale >= 1 && state.scale <= LossScale::kLargest;
  if ((!has_scale && state.scale != 0) || state.steps_in_a_row >= LossScale::kStepsToDouble ||
      state.skipped_in_a_row >= LossScale::kMostSkippedInARow)
    throw DataError(fmt::format("a loss scale of {}", json.dump()));
}

void from_json(const Json& json, std::map<std::string, int64_t>& counts) {
  counts.clear();
  for (const auto& [name, count] : json.get_ref<const Json::object_t&>()) counts[name] = count_in(count);
}

Json to_json(InstructionSet set) { return to_string(set); }
void from_json(const Json& json, InstructionSet& set) {
  const auto named = instruction_set_from_string(json.get<std::string>());
  if (!named) throw DataError(fmt::format("a set of instructions named {}", json.dump()));
  set = *named;
}

// Of what JSON has itself.
template <typename T>
Json to_json(const T& value) {
  return value;
}
template <typename T>
void from_json(const Json& json, T& value) {
  if constexpr (std::is_same_v<T, int64_t>)
    value = count_in(json);
  else if constexpr (std::is_integral_v<T>)
    value = whole_number<T>(json);
  else
    value = json.get<T>();
}

template <typename T>
std::string text_of(const T& value) {
  return to_json(value).dump();
}
template <typename T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "";
}
// Of what most runs have none of.
std::string text_of(const std::map<std::string, int64_t>& counts) {
  return counts.empty() ? "" : to_json(counts).dump();
}
template <typename T>
void take(const Json& json, T& value) {
  from_json(json, value);
}
template <typename T>
void take(const Json& json, std::optional<T>& value) {
  from_json(json, value.emplace());
}

template <auto Member>
constexpr Field field(const char* key, Since since) {
  return {key, since, [](const TrainingState& state) { return text_of(state.*Member); },
          [](const std::string& text, TrainingState& state) {
            take(parse_json<Json>(text, kInnerText, kMostTimesOfState), state.*Member);
          }};
}

// Of a member that is JSON text itself, of somebody else who reads it.
template <std::string TrainingState::*Member>
constexpr Field text_field(const char* key) {
  return {key, Since::kLater, [](const TrainingState& state) { return state.*Member; },
          [](const std::string& text, TrainingState& state) { state.*Member = text; }};
}

// All but global_step, which the checkpoint has itself.
constexpr Field kFields[] = {
    field<&TrainingState::optimizer>("optimizer", Since::kFirst),
    field<&TrainingState::seed>("seed", Since::kFirst),
    field<&TrainingState::threads>("threads", Since::kFirst),
    field<&TrainingState::logical_replicas>("logical_replicas", Since::kLater),
    field<&TrainingState::devices>("devices", Since::kLater),
    field<&TrainingState::process_threads>("process_threads", Since::kLater),
    field<&TrainingState::processor>("processor", Since::kLater),
    field<&TrainingState::instruction_set>("instruction_set", Since::kLater),
    field<&TrainingState::arithmetic>("arithmetic", Since::kLater),
    field<&TrainingState::learning_rate_multiplier>("learning_rate_multiplier", Since::kFirst),
    field<&TrainingState::loss_scale>("loss_scale", Since::kLater),
    field<&TrainingState::missed_updates>("missed_updates", Since::kLater),
    field<&TrainingState::data_cursor>("data_cursor", Since::kFirst),
    field<&TrainingState::elements_taken>("elements_taken", Since::kLater),
    field<&TrainingState::evaluation_data>("evaluation_data", Since::kLater),
    field<&TrainingState::evaluation_due>("evaluation_due", Since::kLater),
    field<&TrainingState::hook_states>("hooks", Since::kFirst),
    text_field<&TrainingState::stage_two>("stage_two"),
};

void require_possible(const TrainingState& state) {
  if (state.logical_replicas < 1) throw DataError(fmt::format("{} logical replicas", state.logical_replicas));
  if (state.learning_rate_multiplier < 0)
    throw DataError(fmt::format("a learning rate times {}", state.learning_rate_multiplier));
  for (const auto& [variable, missed] : state.missed_updates)
    if (missed > state.updates())
      throw DataError(fmt::format("{} updates in all, of which the variable '{}' has missed {}",
                                  state.updates(), variable, missed));
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
  throw Conflict(
      fmt::format("the run in '{0}' was trained with the optimizer {1} and cannot go on with {2}. Go on with "
                  "{3}; or train its variables with {4} from step 0 in another log_dir, with "
                  "--checkpoint_path={0}",
                  path, describe(before), describe(wanted), before.name, wanted.name));
}

std::map<std::string, std::string> to_checkpoint_state(const TrainingState& state) {
  std::map<std::string, std::string> result;
  for (const Field& field : kFields)
    if (std::string text = field.write(state); !text.empty()) result[field.key] = std::move(text);
  return result;
}

TrainingState from_checkpoint_state(const Checkpoint& checkpoint, const std::string& path) {
  TrainingState state;
  state.global_step = checkpoint.global_step;
  const char* read = "";
  try {
    for (const Field& field : kFields) {
      read = field.key;
      if (field.since == Since::kFirst || checkpoint.state.contains(field.key))
        field.read(checkpoint.state.at(field.key), state);
    }
    read = "together";
    require_possible(state);
  } catch (const std::exception& error) {
    throw DataError(
        fmt::format("the checkpoint '{}' holds no training state that this program can continue ({}: {}); "
                    "give it as checkpoint_path with another log_dir to start from its variables only",
                    path, read, error.what()));
  }
  return state;
}

}  // namespace mox::internal
