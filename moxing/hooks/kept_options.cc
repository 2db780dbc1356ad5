#include "moxing/hooks/kept_options.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/config/flag_text.h"
#include "moxing/config/flags.h"
#include "moxing/job/distributed.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox {
namespace {

constexpr const char* kOptionsHook = "options";

class KeptOptionsHook : public TrainingHook {
 public:
  KeptOptionsHook(std::vector<KeptOption> options, std::map<std::string, std::string> facts)
      : options_(std::move(options)), facts_(std::move(facts)) {}

  std::string name() const override { return kOptionsHook; }
  std::string save_state() const override {
    nlohmann::json values;
    for (const auto& [name, text] : facts_) values[name] = text;
    for (const KeptOption& option : options_)
      std::visit([&](const auto& kept) { values[option.name] = kept; }, internal::kept_flag(option.name));
    return values.dump();
  }
  void restore_state(const std::string&) override {}  // use_kept_options has compared them

 private:
  std::vector<KeptOption> options_;
  std::map<std::string, std::string> facts_;
};

std::optional<Checkpoint> checkpoint_of(ModeKeys mode, const std::string& log_dir,
                                        const std::string& checkpoint_path, std::string* path) {
  if (mode != ModeKeys::TRAIN && !checkpoint_path.empty()) {
    if (is_there_as_file(checkpoint_path)) return std::nullopt;
    return load_checkpoint(checkpoint_path, path);
  }
  if (log_dir.empty()) return std::nullopt;
  return load_latest_checkpoint(log_dir, path);
}

// {"path": ..., "options": {...}}, or {}.
std::string kept_text(ModeKeys mode, const std::string& log_dir, const std::string& checkpoint_path) {
  try {
    std::string path;
    const auto checkpoint = checkpoint_of(mode, log_dir, checkpoint_path, &path);
    if (!checkpoint) return "{}";
    const auto hooks = parse_json(checkpoint->state.at("hooks"));
    return nlohmann::json{{"path", path}, {"options", parse_json(hooks.at(kOptionsHook).get<std::string>())}}
        .dump();
  } catch (const InvalidArgument&) {
    throw;  // a URL: what lies there would be passed over in silence
  } catch (const std::exception&) {
    return "{}";  // of a program that keeps none; what cannot be read at all ends the run, which says why
  }
}

std::map<std::string, internal::KeptValue> to_kept(const nlohmann::json& options, const std::string& path) {
  std::map<std::string, internal::KeptValue> kept;
  try {
    for (const auto& [name, value] : options.items()) {
      if (value.is_array()) {
        kept[name] = value.get<std::vector<std::string>>();
      } else {
        kept[name] = value.get<std::string>();
      }
    }
  } catch (const nlohmann::json::exception& failure) {
    throw DataError(fmt::format("the options that '{}' keeps are damaged ({})", path, failure.what()));
  }
  return kept;
}

std::map<std::string, std::string> texts_of(const std::map<std::string, internal::KeptValue>& kept) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : kept) texts[name] = internal::shown_kept(value);
  return texts;
}

}  // namespace

std::shared_ptr<Hook> kept_options_hook(std::vector<KeptOption> options,
                                        std::map<std::string, std::string> facts) {
  for (const KeptOption& option : options) internal::kept_flag(option.name);  // throws for a secret
  return std::make_shared<KeptOptionsHook>(std::move(options), std::move(facts));
}

std::map<std::string, std::string> use_kept_options(ModeKeys mode, const std::string& log_dir,
                                                    const std::string& checkpoint_path,
                                                    const std::vector<KeptOption>& options) {
  for (const KeptOption& option : options) internal::kept_flag(option.name);
  const auto read = parse_json(broadcast(rank() == 0 ? kept_text(mode, log_dir, checkpoint_path) : ""));
  if (read.empty()) return {};
  const auto path = read.at("path").get<std::string>();
  const auto kept = to_kept(read.at("options"), path);
  std::map<std::string, std::string> texts = texts_of(kept);
  for (const KeptOption& option : options) {
    const auto found = kept.find(option.name);
    if (found == kept.end() || internal::is_kept_value(option.name, found->second)) continue;
    if (!is_given(option.name)) {
      internal::set_flag_from_kept(option.name, found->second, "'" + path + "'");
    } else if (!option.may_change) {
      throw ConfigError(fmt::format(
          "{} is '{}' ({}), and the model in '{}' was trained with '{}'. Leave the option out, or train "
          "anew in another log_dir",
          option.name, internal::shown_flag(option.name), option_origin(option.name), path,
          texts[option.name]));
    }
  }
  return texts;
}

std::map<std::string, std::string> kept_options_of(const std::string& run) {
  const auto read = parse_json(kept_text(ModeKeys::EVAL, "", run));
  if (read.empty()) return {};
  return texts_of(to_kept(read.at("options"), read.at("path").get<std::string>()));
}

}  // namespace mox
