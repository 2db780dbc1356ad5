#include "moxing/image_sets/label_names_hook.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/image_sets/image_options.h"
#include "moxing/job/distributed.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/nearest_name.h"
#include "runtime/text/utf8.h"

namespace mox {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNamesHook = "label_names";

// The classes that a run was trained for, and what says so.
struct ListOfRun {
  std::string place;
  std::vector<std::string> names;
};

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
  constexpr size_t kMost = size_t{1} << 24;  // of a damaged one
  std::vector<std::string> names(std::min(json.get<size_t>(), kMost));
  for (size_t i = 0; i < names.size(); ++i) names[i] = std::to_string(i);
  return names;
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
    if (const auto list = list_of_run(session)) return require_same(*list);
    if (!are_numbers(names_)) warn_of_unknown(session.checkpoint());
  }

 private:
  void keep(const Session& session) const {
    if (session.first_step() == 0) warn_of_other_classes(session);
    if (session.log_dir().empty()) return;
    const std::string path = session.log_dir() + "/labels.txt";
    if (session.first_step() > 0) {
      if (is_there(path)) {
        require_same(read_list(path));
      } else if (const auto names = kept_label_names(session.checkpoint()); !names.empty()) {
        require_same({session.checkpoint(), names});
      }
    }
    data::write_label_names(path, names_);
  }

  static ListOfRun read_list(const std::string& path) { return {path, data::read_label_names(path)}; }

  // Of the run that the checkpoint comes from.
  static std::optional<ListOfRun> list_of_run(const Session& session) {
    const fs::path checkpoint = session.checkpoint();
    // The best state lies a level deeper (log_dir/best/checkpoint-<step>).
    const bool is_best = checkpoint.parent_path().filename() == "best";
    const fs::path above_best = is_best ? checkpoint.parent_path().parent_path() : fs::path();
    const auto is_list = [](const fs::path& directory) {
      return !directory.empty() && is_there_as_file(directory / "labels.txt");
    };
    for (const fs::path& directory : {checkpoint, checkpoint.parent_path(), above_best})
      if (is_list(directory)) return read_list(directory / "labels.txt");
    if (auto names = kept_label_names(session.checkpoint()); !names.empty())
      return ListOfRun{session.checkpoint(), std::move(names)};
    if (is_list(session.log_dir())) return read_list(session.log_dir() + "/labels.txt");
    return std::nullopt;
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
    std::optional<ListOfRun> before;
    try {
      before = list_of_run(session);
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

  void require_same(const ListOfRun& before) const {
    if (before.names == names_) return;
    throw DataError(
        fmt::format("'{}' says that the run was trained with {} classes, the data has {} now; the first "
                    "difference is {}. Give it the classes of before, or begin anew "
                    "in another log_dir",
                    before.place, before.names.size(), names_.size(), first_difference(before.names)));
  }

  // "label 1: 'rose' before, 'tulip' now"
  std::string first_difference(const std::vector<std::string>& before) const {
    const auto [old_name, new_name] =
        std::mismatch(before.begin(), before.end(), names_.begin(), names_.end());
    const auto text = [](auto name, auto end) {
      return name == end ? std::string("nothing") : "'" + *name + "'";
    };
    return fmt::format("label {}: {} before, {} now", old_name - before.begin(), text(old_name, before.end()),
                       text(new_name, names_.end()));
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

}  // namespace mox
