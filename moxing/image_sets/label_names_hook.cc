#include "moxing/image_sets/label_names_hook.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/config/warn_once.h"
#include "moxing/image_sets/image_options.h"
#include "moxing/job/distributed.h"
#include "moxing/json/parse_json.h"
#include "moxing/json/whole_number.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/nearest_name.h"
#include "runtime/text/utf8.h"

namespace mox {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNamesHook = "label_names";

// "0", "1", ... tell nothing that another list could contradict.
bool are_numbers(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] != std::to_string(i)) return false;
  return true;
}

// A list, or of numbers how many there are: a million would make each checkpoint larger than its network.
// Names that are no UTF-8 cannot be JSON: labels.txt alone has them.
std::string json_of_names(const std::vector<std::string>& names) {
  if (are_numbers(names)) return std::to_string(names.size());
  return std::ranges::all_of(names, [](const std::string& name) { return is_utf8(name); })
             ? nlohmann::json(names).dump()
             : "";
}

std::vector<std::string> names_of_json(const nlohmann::json& json) {
  if (!json.is_number()) return json.get<std::vector<std::string>>();
  constexpr size_t kMost = size_t{1} << 24;
  std::vector<std::string> names(whole_number<size_t>(json, 0, kMost));
  for (size_t i = 0; i < names.size(); ++i) names[i] = std::to_string(i);
  return names;
}

TrainedLabelNames read_list(const std::string& path) { return {path, data::read_label_names(path)}; }

bool has_list(const fs::path& directory) {
  return !directory.empty() && is_there_as_file(directory / "labels.txt");
}

// "label 1: 'rose' before, 'tulip' now"
std::string first_difference(const std::vector<std::string>& before, const std::string& when_before,
                             const std::vector<std::string>& now, const std::string& when_now) {
  const auto [old_name, new_name] = std::mismatch(before.begin(), before.end(), now.begin(), now.end());
  const auto text = [](auto name, auto end) {
    return name == end ? std::string("nothing") : "'" + *name + "'";
  };
  return fmt::format("label {}: {} {}, {} {}", old_name - before.begin(), text(old_name, before.end()),
                     when_before, text(new_name, now.end()), when_now);
}

bool share_a_name(const std::vector<std::string>& some, const std::vector<std::string>& others) {
  const std::set<std::string_view> known(some.begin(), some.end());
  return std::ranges::any_of(others, [&](const std::string& name) { return known.contains(name); });
}

// A labels.txt, and what the checkpoint beside it keeps, if it keeps names. A list that was put there from
// elsewhere, or written anew in another order, would call every answer by a wrong name.
TrainedLabelNames agreed(TrainedLabelNames listed, TrainedLabelNames kept) {
  if (kept.names.empty() || kept.names == listed.names) return listed;
  if (kept.names.size() != listed.names.size() || share_a_name(kept.names, listed.names))
    throw DataError(fmt::format(
        "'{}' has {} classes ({}), and the checkpoint beside it ('{}') keeps {} that it was trained for ({}), "
        "numbered otherwise; the first difference is {}. If the list is of another training or data set, take "
        "it away: the checkpoint needs none. If it was changed by hand, give it the checkpoint's order",
        listed.place, listed.names.size(), internal::first_names(listed.names), kept.place, kept.names.size(),
        internal::first_names(kept.names),
        first_difference(kept.names, "in the checkpoint", listed.names, "in the list")));
  if (are_numbers(kept.names)) return listed;
  if (are_numbers(listed.names)) return kept;
  internal::warn_once(fmt::format(
      "'{}' calls the classes otherwise ({}) than '{}', which was trained for {}: its names are taken. If it "
      "is the list of another training or data set, the answers have wrong names: take it away, the "
      "checkpoint needs none",
      listed.place, internal::first_names(listed.names), kept.place, internal::first_names(kept.names)));
  return listed;
}

class LabelNamesHook : public Hook {
 public:
  explicit LabelNamesHook(std::vector<std::string> names) : names_(std::move(names)) {}

  std::string name() const override { return kNamesHook; }
  std::string save_state() const override { return json_of_names(names_); }
  void restore_state(const std::string&) override {}  // `keep` compares

  void after_create_session(Session& session) override {
    if (rank() != 0) return;  // rank 0 keeps what the job keeps
    if (session.mode() == ModeKeys::TRAIN) return keep(session);
    if (names_.empty()) return;
    if (const auto list = trained_label_names(session.checkpoint(), session.log_dir()))
      return require_same(*list);
    if (!are_numbers(names_)) warn_of_unknown(session.checkpoint());
  }

 private:
  void keep(const Session& session) const {
    if (session.first_step() == 0) warn_of_other_classes(session);
    if (session.log_dir().empty()) return;
    const std::string path = session.log_dir() + "/labels.txt";
    if (session.first_step() > 0) {
      TrainedLabelNames before{session.checkpoint(), kept_label_names(session.checkpoint())};
      if (is_there(path)) before = agreed(read_list(path), std::move(before));
      if (!before.names.empty()) require_same(before);
    }
    data::write_label_names(path, names_);
  }

  void warn_of_unknown(const std::string& checkpoint) const {
    log_warning(fmt::format(
        "which classes '{}' was trained for is not known: it keeps no list of them, and there is no labels.txt "
        "beside it. Its answers are taken for the classes of the data in their order ({}): if its training "
        "numbered them otherwise, what is said of them is wrong. Put the labels.txt of its training (in its "
        "log_dir) beside it",
        checkpoint, internal::first_names(names_)));
  }

  // A training that starts from all variables of another run: as many classes, so that their shapes fit, tell
  // nothing of their names. What begins anew is named by the run itself.
  void warn_of_other_classes(const Session& session) const {
    if (session.checkpoint().empty() || session.restored_variable_names() != session.variable_names()) return;
    std::optional<TrainedLabelNames> before;
    try {
      before = trained_label_names(session.checkpoint(), session.log_dir());
    } catch (const Error& error) {  // a list of another kind beside the variables is nobody's fault
      log_warning(fmt::format("whether '{}' was trained for the same classes is not known: {}",
                              session.checkpoint(), error.what()));
      return;
    }
    const auto is_own = [&] {  // what begins anew is named by the run itself
      const fs::path place = before->place;
      return place == fs::path(session.log_dir()) / place.filename();
    };
    if (!before || is_own() || before->names.size() != names_.size() || before->names == names_) return;
    log_warning(fmt::format(
        "'{}' was trained for other classes, as '{}' says ({}), and all variables start from it, those of "
        "the layer that gives the answers, too: it begins with what it has learnt of the classes of before. "
        "checkpoint_exclude_patterns leaves variables out (model.pretrained of image_classifier those of "
        "that layer), so that they begin anew",
        session.checkpoint(), before->place, first_difference(before->names)));
  }

  void require_same(const TrainedLabelNames& before) const {
    if (before.names == names_) return;
    throw DataError(fmt::format(
        "'{}' says that the run was trained with {} classes, the data has {} now; the first difference is {}. "
        "Give it the classes of before, or begin anew in another log_dir",
        before.place, before.names.size(), names_.size(), first_difference(before.names)));
  }

  std::string first_difference(const std::vector<std::string>& before) const {
    return mox::first_difference(before, "before", names_, "now");
  }

  std::vector<std::string> names_;
};

}  // namespace

std::shared_ptr<Hook> label_names_hook(std::vector<std::string> names) {
  return std::make_shared<LabelNamesHook>(std::move(names));
}

std::vector<std::string> kept_label_names(const std::string& path) {
  try {
    if (path.empty() || is_there_as_file(path)) return {};
    const auto hooks = parse_json(load_trained(path).state.at("hooks"));
    return names_of_json(parse_json(hooks.at(kNamesHook).get<std::string>()));
  } catch (const InvalidArgument&) {
    throw;  // a URL: what lies there would be passed over in silence
  } catch (const std::exception&) {
    return {};  // of a run that keeps none; what cannot be read at all ends the run, which says why
  }
}

std::optional<TrainedLabelNames> trained_label_names(const std::string& checkpoint,
                                                     const std::string& log_dir) {
  const fs::path itself = checkpoint, parent = itself.parent_path();
  // The best state lies a level deeper (log_dir/best/checkpoint-<step>).
  const fs::path above_best = parent.filename() == "best" ? parent.parent_path() : fs::path();
  TrainedLabelNames kept{checkpoint, kept_label_names(checkpoint)};
  for (const fs::path& directory : {itself, parent, above_best})
    if (has_list(directory)) return agreed(read_list((directory / "labels.txt").string()), std::move(kept));
  if (kept.names.empty() && checkpoint.empty()) kept = {log_dir, kept_label_names(log_dir)};
  if (!kept.names.empty() && !checkpoint.empty()) return kept;
  if (has_list(log_dir))
    return agreed(read_list((fs::path(log_dir) / "labels.txt").string()), std::move(kept));
  if (kept.names.empty()) return std::nullopt;
  return kept;
}

}  // namespace mox
