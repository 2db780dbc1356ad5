#include "moxing/engine/session/internal/pass_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

class PassResult : public StepResult {
 public:
  PassResult(const CompiledModel& model, int64_t samples) : model_(model), samples_(samples) {}
  const Array& array(std::string_view name) const override { return model_.fetched(name); }
  int64_t samples() const override { return samples_; }

 private:
  const CompiledModel& model_;
  int64_t samples_;
};

}  // namespace

PassSession::PassSession(const RunSpec& spec, const RunSettings& settings, VariableStore& store,
                         Console& console, int64_t global_step)
    : spec_(spec), settings_(settings), store_(store), console_(console), global_step_(global_step) {}

std::function<void(ModelBuild&, const ModelSpec&)> PassSession::begin() {
  return [this](ModelBuild& build, const ModelSpec& spec) { begin_graph(build, spec); };
}

void PassSession::begin_graph(ModelBuild& build, const ModelSpec& spec) {
  if (!hooks_are_complete_) {
    hooks_are_complete_ = true;
    first_spec_ = spec;
    hooks_ = spec.hooks;
    hooks_.insert(hooks_.end(), spec_.hooks.begin(), spec_.hooks.end());
    for (const auto& hook : hooks_)
      if (!hook) throw InvalidArgument("a hook in ModelSpec::hooks or RunSpec::hooks is null");
    std::erase_if(hooks_, [&](const auto& hook) { return !hook->takes_part_in(settings_.run_mode); });
    for (const auto& [name, tensor] : spec.log_info)
      if (settings_.run_mode != ModeKeys::EVAL ||
          std::ranges::none_of(spec.metrics, [&](const auto& metric) { return metric.first == name; }))
        log_names_.push_back(name);
  }
  for (const auto& hook : hooks_) hook->begin(build);
}

void PassSession::run(const Dataset& data, const std::function<void()>& pass) {
  start_ = std::chrono::steady_clock::now();
  if (data.cardinality() > 0) all_batches_ = (data.cardinality() + job().size() - 1) / job().size();
  std::exception_ptr error;
  try {
    for (const auto& hook : hooks_) {
      ++entered_hooks_;
      hook->after_create_session(*this);
    }
    if (!stop_requested_) pass();
  } catch (...) {
    error = std::current_exception();
    failed_ = true;
  }
  end_hooks(error);
}

void PassSession::end_hooks(std::exception_ptr error) {
  const auto keep_first = [&](const char* what) {  // inside of a handler
    if (error) return log_error(fmt::format("a further error while the run ended: {}", what));
    error = std::current_exception();
    failed_ = true;
  };
  for (; entered_hooks_ > 0; --entered_hooks_) {
    try {
      hooks_[entered_hooks_ - 1]->end(*this);
    } catch (const std::exception& further) {
      keep_first(further.what());
    } catch (...) {
      keep_first("something that is no std::exception was thrown");
    }
  }
  console_.remove_progress();
  if (error) std::rethrow_exception(error);
}

void PassSession::before_batch() {
  for (const auto& hook : hooks_) hook->before_run(*this);
}

bool PassSession::after_batch(CompiledModel& model, int64_t samples) {
  ++batches_;
  samples_ += samples;
  const PassResult result(model, samples);
  for (const auto& hook : hooks_) hook->after_run(*this, result);
  show_progress();
  return !stop_requested_;
}

void PassSession::after_evaluation(const Metrics& metrics) {
  for (const auto& hook : hooks_) hook->after_evaluation(*this, metrics);
}

double PassSession::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void PassSession::show_progress() {
  const double passed = std::max(seconds(), 1e-9);
  console_.show_progress({.global_step = batches_,
                          .max_global_step = all_batches_,
                          .steps_per_second = static_cast<double>(batches_) / passed,
                          .samples_per_second = static_cast<double>(samples_) / passed});
}

void PassSession::request_stop(std::string reason) {
  if (job().size() > 1)
    throw FailedPrecondition(fmt::format(
        "a hook has asked to stop ({}) in run_mode {} of a job of {} processes, which ends with its "
        "data: set {}_steps instead",
        reason, to_string(settings_.run_mode), job().size(), to_string(settings_.run_mode)));
  if (stop_requested_) return;
  stop_requested_ = true;
  stop_reason_ = std::move(reason);
}

void PassSession::refuse(const char* what) const {
  throw FailedPrecondition(
      fmt::format("a hook has called {} in run_mode {}, which trains nothing; let it look at "
                  "Session::mode(), or override Hook::takes_part_in",
                  what, to_string(settings_.run_mode)));
}

void PassSession::save_checkpoint() { refuse("Session::save_checkpoint"); }
Metrics PassSession::evaluate() { refuse("Session::evaluate"); }
void PassSession::set_learning_rate_multiplier(double) { refuse("Session::set_learning_rate_multiplier"); }

std::optional<metrics::Direction> PassSession::direction(std::string_view metric) const {
  return direction_of(first_spec_, metric);
}

std::vector<std::string> PassSession::variable_names() const {
  std::vector<std::string> names;
  for (const NamedArray& entry : store_.all()) names.push_back(entry.name);
  return names;
}

void PassSession::set_variable(std::string_view name, const Array& value) {
  Array variable = store_.get(name);
  if (variable.type() != value.type())
    throw InvalidArgument(fmt::format("the variable '{}' is {} and cannot take a value of {}", name,
                                      to_string(variable.type()), to_string(value.type())));
  std::memcpy(variable.data(), value.data(), value.bytes());
}

}  // namespace mox::internal
