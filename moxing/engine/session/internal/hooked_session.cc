#include "moxing/engine/session/internal/hooked_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "moxing/engine/session/internal/evaluator.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/refusals/out_of_memory.h"

namespace mox::internal {

HookedSession::HookedSession(const RunSpec& spec, Start& start, Console& console)
    : spec_(spec), start_(start), console_(console) {}

std::function<void(ModelBuild&, const ModelSpec&)> HookedSession::begin() {
  return [this](ModelBuild& build, const ModelSpec& spec) { begin_graph(build, spec); };
}

void HookedSession::begin_graph(ModelBuild& build, const ModelSpec& spec) {
  if (!hooks_are_complete_) {
    hooks_are_complete_ = true;
    first_spec_ = spec;
    for (const auto& [name, tensor] : spec.log_info)
      if (is_logged(spec, name)) log_names_.push_back(name);
    hooks_ = spec.hooks;
    hooks_.insert(hooks_.end(), spec_.hooks.begin(), spec_.hooks.end());
    std::erase_if(hooks_, [&](const auto& hook) { return hook && !hook->takes_part_in(mode()); });
    complete_hooks(hooks_);
  }
  call_hooks("begin", [&](Hook& hook) { hook.begin(build); });
}

void HookedSession::complete_hooks(std::vector<std::shared_ptr<Hook>>& hooks) {
  for (const auto& hook : hooks)
    if (!hook) throw InvalidArgument("a hook in ModelSpec::hooks or RunSpec::hooks is null");
}

namespace {

// A hook knows what is wrong with a state, but not which file it is of.
void restore_hook(Hook& hook, const std::string& state, const std::string& path) {
  try {
    hook.restore_state(state);
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("the checkpoint '{}', the state of the hook '{}': {}", path, hook.name(), error.what()));
  }
}

}  // namespace

void HookedSession::run(const std::map<std::string, std::string>& hook_states, const std::string& path,
                        FunctionRef<void()> body) {
  std::exception_ptr error;
  try {
    for (const auto& hook : hooks_) {
      const auto state = hook_states.find(hook->name());
      if (!hook->name().empty() && state != hook_states.end()) restore_hook(*hook, state->second, path);
    }
    call_hooks("after_create_session", [&](Hook& hook) {
      ++entered_hooks_;
      hook.after_create_session(*this);
    });
    body();
  } catch (...) {
    error = std::current_exception();
    failed_ = true;
  }
  end_hooks(error);
}

void HookedSession::end_hooks(std::exception_ptr error) {
  const auto keep_first = [&](const char* what) {  // inside of a handler
    if (error) return log_error(fmt::format("a further error while the run ended: {}", what));
    error = std::current_exception();
    failed_ = true;
  };
  ending_ = true;
  for (; entered_hooks_ > 0; --entered_hooks_) {
    try {
      hooks_[entered_hooks_ - 1]->end(*this);
    } catch (const EvaluationGivenUp&) {
    } catch (const std::exception& further) {
      keep_first(further.what());
    } catch (...) {
      keep_first("something that is no std::exception was thrown");
    }
  }
  try {
    end_saving();
  } catch (const std::exception& further) {
    keep_first(further.what());
  }
  console_.remove_progress();
  if (error) std::rethrow_exception(error);
}

void HookedSession::call_hooks(std::string_view function, FunctionRef<void(Hook&)> call) const {
  size_t number = 0;
  try {
    for (; number < hooks_.size(); ++number) call(*hooks_[number]);
  } catch (...) {
    rethrow_naming_memory(
        [&] {
          const std::string name = hooks_[number]->name();
          return fmt::format("what {} of hook {} of {}{} makes", function, number + 1, hooks_.size(),
                             name.empty() ? "" : " ('" + name + "')");
        },
        "let it keep less, or leave it out of ModelSpec::hooks and RunSpec::hooks");
  }
}

void HookedSession::before_run() {
  call_hooks("before_run", [&](Hook& hook) { hook.before_run(*this); });
}

void HookedSession::after_run(const StepResult& result) {
  call_hooks("after_run", [&](Hook& hook) { hook.after_run(*this, result); });
}

void HookedSession::after_evaluation(const Metrics& metrics) {
  call_hooks("after_evaluation", [&](Hook& hook) { hook.after_evaluation(*this, metrics); });
}

void HookedSession::request_stop(std::string reason) {
  if (stop_requested_) return;
  stop_requested_ = true;
  stop_reason_ = std::move(reason);
}

std::optional<metrics::Direction> HookedSession::direction(std::string_view metric) const {
  return ValueDirections(first_spec_).of(metric);
}

std::vector<std::string> HookedSession::variable_names() const {
  std::vector<std::string> names;
  for (const NamedArray& entry : start_.store.all()) names.push_back(entry.name);
  return names;
}

void HookedSession::set_variable(std::string_view name, const Array& value) {
  Array variable = start_.store.get(name);
  if (variable.type() != value.type())
    throw InvalidArgument(fmt::format("the variable '{}' is {} and cannot take a value of {}", name,
                                      to_string(variable.type()), to_string(value.type())));
  std::memcpy(variable.data(), value.data(), value.bytes());
}

}  // namespace mox::internal
