#include "moxing/hooks/selection_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <variant>

#include "moxing/config/flags.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

// The options of a section, beside what the program's own struct says.
class Section {
 public:
  explicit Section(std::string name) : name_(std::move(name)) {}

  template <typename T>
  T value(const char* field, const std::optional<T>& from_code) const {
    return resolve<T>(name_ + "." + field, from_code);
  }

  // "auto", "max" or "min" as KeepBestOptions and MonitorOptions have it.
  std::optional<bool> larger_is_better(bool has_code, const std::optional<bool>& from_code) const {
    std::optional<std::string> text;
    if (has_code) text = !from_code ? "auto" : *from_code ? "max" : "min";
    const std::string mode = value<std::string>("mode", text);
    if (mode == "auto") return std::nullopt;
    return mode == "max";
  }

  // For a section that is off. A default that is written out says nothing where the metric is written out,
  // too, as in the configuration.yaml of a run.
  void refuse_given(std::initializer_list<const char*> fields) const {
    const bool is_written_out = is_given(name_ + ".metric");
    for (const char* field : fields) {
      const std::string option = name_ + "." + field, origin = option_origin(option);
      if (is_given(option) && origin != "code" && !(is_written_out && has_its_default(option)))
        throw ConfigError(fmt::format("{} is set ({}), but {}.metric is not: it would have no effect", option,
                                      origin, name_));
    }
  }

 private:
  static bool has_its_default(const std::string& name) {
    const auto option = std::ranges::find(built_in_options(), name, &Option::name);
    return std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, std::monostate>)
            return false;
          else
            return resolve<T>(name, std::nullopt) == value;
        },
        option->default_value);
  }

  std::string name_;
};

template <typename T, typename Struct>
std::optional<T> field_of(const std::optional<Struct>& from_code, T Struct::*field) {
  return from_code ? std::optional<T>(*from_code.*field) : std::nullopt;
}

std::optional<KeepBestOptions> resolve_keep_best(const std::optional<KeepBestOptions>& from_code) {
  const Section section("keep_best");
  KeepBestOptions options;
  options.metric = section.value("metric", field_of(from_code, &KeepBestOptions::metric));
  options.larger_is_better =
      section.larger_is_better(from_code.has_value(), from_code ? from_code->larger_is_better : std::nullopt);
  options.restore = section.value("restore", field_of(from_code, &KeepBestOptions::restore));
  if (!options.metric.empty()) return options;
  section.refuse_given({"mode", "restore"});
  return std::nullopt;
}

// Of a section that is off, nothing.
std::optional<MonitorOptions> resolve_monitor(const Section& section,
                                              const std::optional<MonitorOptions>& from_code) {
  MonitorOptions options;
  options.metric = section.value("metric", field_of(from_code, &MonitorOptions::metric));
  options.larger_is_better =
      section.larger_is_better(from_code.has_value(), from_code ? from_code->larger_is_better : std::nullopt);
  options.patience = section.value("patience", field_of(from_code, &MonitorOptions::patience));
  options.min_change = section.value("min_change", field_of(from_code, &MonitorOptions::min_change));
  if (!options.metric.empty()) return options;
  section.refuse_given({"mode", "patience", "min_change"});
  return std::nullopt;
}

std::optional<PlateauOptions> resolve_plateau(const std::optional<PlateauOptions>& from_code) {
  const Section section("plateau");
  const auto monitor = resolve_monitor(section, field_of(from_code, &PlateauOptions::monitor));
  const PlateauOptions options{
      .monitor = monitor.value_or(MonitorOptions()),
      .factor = section.value("factor", field_of(from_code, &PlateauOptions::factor)),
      .min_multiplier =
          section.value("min_multiplier", field_of(from_code, &PlateauOptions::min_multiplier))};
  if (monitor) return options;
  section.refuse_given({"factor", "min_multiplier"});
  return std::nullopt;
}

}  // namespace

SelectionSettings resolve_selection(const SelectionSettings& from_code) {
  return {.keep_best = resolve_keep_best(from_code.keep_best),
          .early_stopping = resolve_monitor(Section("early_stopping"), from_code.early_stopping),
          .plateau = resolve_plateau(from_code.plateau)};
}

std::vector<std::shared_ptr<Hook>> selection_hooks(const SelectionSettings& settings) {
  std::vector<std::shared_ptr<Hook>> hooks;
  if (settings.keep_best) hooks.push_back(keep_best_hook(*settings.keep_best));
  if (settings.early_stopping) hooks.push_back(early_stopping_hook(*settings.early_stopping));
  if (settings.plateau)
    hooks.push_back(plateau_learning_rate_hook(settings.plateau->monitor, settings.plateau->factor,
                                               settings.plateau->min_multiplier));
  return hooks;
}

}  // namespace mox::internal
