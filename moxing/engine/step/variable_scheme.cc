#include "moxing/engine/step/variable_scheme.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <utility>

#include "runtime/base/error.h"

namespace mox::internal {
namespace {

// Copies of variables, for each lane that has its own.
class LaneCopies {
 public:
  explicit LaneCopies(int lanes) : of_lanes_(lanes) {}

  // Made on the first call, of the value that `host` has then.
  Array get(int lane, std::string_view name, const Array& host) {
    auto& copies = of_lanes_[lane];
    auto found = copies.find(name);
    if (found == copies.end()) found = copies.emplace(name, copy_of(name, host)).first;
    return found->second;
  }
  // All of a lane's, or that of one variable on all lanes, take the value of `host(name)`.
  template <typename Host>
  void pull(int lane, const Host& host) {
    for (auto& [name, copy] : of_lanes_[lane]) take(copy, host(name));
  }
  void refresh(std::string_view name, const Array& host) {
    for (auto& copies : of_lanes_)
      if (auto found = copies.find(name); found != copies.end()) take(found->second, host);
  }

 private:
  static Array copy_of(std::string_view name, const Array& host) {
    try {
      return host.clone();
    } catch (const OutOfMemory& error) {
      throw OutOfMemory(
          fmt::format("a device's own copy of the variable '{}' does not fit: {}; lower num_devices, or let "
                      "each process have one copy for all (variable_update=replicated_host)",
                      name, error.what()));
    }
  }
  static void take(Array& copy, const Array& from) { std::memcpy(copy.data(), from.data(), from.bytes()); }

  std::vector<std::map<std::string, Array, std::less<>>> of_lanes_;
};

class HostScheme : public VariableScheme {
 public:
  HostScheme(VariableStore& store, const MakeUpdater& make) : VariableScheme(store, make) {}

  bool applies_at_once() const override { return true; }
  Array of_lane(int, std::string_view name) override { return host(name); }
};

// The first lane has the process's variables.
class ReplicatedScheme : public VariableScheme {
 public:
  ReplicatedScheme(VariableStore& store, int lanes, const MakeUpdater& make)
      : VariableScheme(store, make), copies_(lanes) {
    for (int lane = 1; lane < lanes; ++lane)
      further_.push_back(make([this, lane](std::string_view name) { return of_lane(lane, name); }, false));
  }

  Array of_lane(int lane, std::string_view name) override {
    return lane == 0 ? host(name) : copies_.get(lane, name, host(name));
  }
  std::vector<size_t> declare(std::span<const std::string> variables) override {
    std::vector<size_t> numbers = VariableScheme::declare(variables);
    for (const auto& updater : further_) updater->declare(variables);
    return numbers;
  }
  void begin_step(const StepMoment& moment) override {
    VariableScheme::begin_step(moment);
    for (const auto& further : further_) further->begin_step(moment, updater().loss_scale().skipped_steps());
  }
  void apply_all(std::span<const size_t> parameters, std::span<const std::span<float>> gradients,
                 double scale, LaneThreads& lanes, const Team& team) override {
    lanes.run([&](int lane) {
      ParameterUpdater& of_lane = lane == 0 ? updater() : *further_[lane - 1];
      for (size_t i = 0; i < gradients.size(); ++i) of_lane.apply(parameters[i], gradients[i], scale, team);
    });
  }
  void end_step(const Changed& changed) override {
    for (const std::string& name : changed.after_step) refresh(name);
  }
  void refresh(std::string_view name) override { copies_.refresh(name, host(name)); }

 private:
  LaneCopies copies_;
  std::vector<std::unique_ptr<ParameterUpdater>> further_;  // of the lanes after the first
};

class ParameterServerScheme : public VariableScheme {
 public:
  ParameterServerScheme(VariableStore& store, int lanes, Communicator& ranks, const MakeUpdater& make)
      : VariableScheme(store, make), ranks_(ranks), copies_(lanes) {}

  bool applies_here() const override { return ranks_.rank() == 0; }
  Array of_lane(int lane, std::string_view name) override { return copies_.get(lane, name, host(name)); }
  void prepare_lane(int lane) override {
    copies_.pull(lane, [this](std::string_view name) { return host(name); });
  }
  void end_step(const Changed& changed) override {
    for (size_t i = 0; changed.alone && i < changed.after_step.size(); ++i) {
      Array variable = host(changed.after_step[i]);
      std::memcpy(variable.data(), changed.alone->after_step_variable(i).data(), variable.bytes());
    }
    for (const std::string& name : changed.after_step) refresh(name);
    if (ranks_.size() == 1) return;
    for (const std::string& name : changed.by_gradients) {
      Array variable = host(name);
      ranks_.broadcast({variable.data(), variable.bytes()});
    }
  }
  void refresh(std::string_view name) override { copies_.refresh(name, host(name)); }

 private:
  Communicator& ranks_;
  LaneCopies copies_;
};

}  // namespace

UpdateScheme update_scheme_from_string(std::string_view name) {
  if (name == "replicated_host") return UpdateScheme::kReplicatedHost;
  if (name == "replicated") return UpdateScheme::kReplicated;
  MOX_ASSERT(name == "parameter_server", "the option has one of three values");
  return UpdateScheme::kParameterServer;
}

VariableScheme::VariableScheme(VariableStore& store, const MakeUpdater& make)
    : store_(store), updater_(make([this](std::string_view name) { return host(name); }, true)) {}

std::vector<size_t> VariableScheme::declare(std::span<const std::string> variables) {
  return updater_->declare(variables);
}

void VariableScheme::begin_step(const StepMoment& moment) {
  updater_->begin_step(moment, updater_->loss_scale().skipped_steps());
}

void VariableScheme::apply_all(std::span<const size_t> parameters,
                               std::span<const std::span<float>> gradients, double scale, LaneThreads&,
                               const Team& team) {
  for (size_t i = 0; i < gradients.size(); ++i) updater_->apply(parameters[i], gradients[i], scale, team);
}

std::unique_ptr<VariableScheme> make_variable_scheme(UpdateScheme scheme, VariableStore& store, int lanes,
                                                     Communicator& ranks,
                                                     const VariableScheme::MakeUpdater& make) {
  switch (scheme) {
    case UpdateScheme::kReplicatedHost:
      break;
    case UpdateScheme::kReplicated:
      return std::make_unique<ReplicatedScheme>(store, lanes, make);
    case UpdateScheme::kParameterServer:
      return std::make_unique<ParameterServerScheme>(store, lanes, ranks, make);
  }
  return std::make_unique<HostScheme>(store, make);
}

}  // namespace mox::internal
