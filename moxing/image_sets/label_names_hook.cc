#include "moxing/image_sets/label_names_hook.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "moxing/image_sets/image_options.h"
#include "moxing/job/distributed.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox {
namespace {

class LabelNamesHook : public Hook {
 public:
  explicit LabelNamesHook(std::vector<std::string> names) : names_(std::move(names)) {}

  void after_create_session(Session& session) override {
    if (rank() != 0) return;  // rank 0 keeps what the job keeps
    if (session.mode() == ModeKeys::TRAIN) return keep(session);
    const std::string list = list_of_run(session);
    if (!names_.empty() && !list.empty()) require_same(list);
  }

 private:
  void keep(const Session& session) const {
    if (session.first_step() == 0) warn_of_other_classes(session);
    if (session.log_dir().empty()) return;
    const std::string path = session.log_dir() + "/labels.txt";
    if (session.first_step() > 0 && is_there(path)) require_same(path);
    data::write_label_names(path, names_);
  }

  // Of the run that the checkpoint comes from; "" if it has none.
  static std::string list_of_run(const Session& session) {
    namespace fs = std::filesystem;
    const fs::path checkpoint = session.checkpoint();
    // The best state lies a level deeper (log_dir/best/checkpoint-<step>).
    const bool is_best = checkpoint.parent_path().filename() == "best";
    const fs::path above_best = is_best ? checkpoint.parent_path().parent_path() : fs::path();
    for (const fs::path& directory :
         {checkpoint, checkpoint.parent_path(), above_best, fs::path(session.log_dir())})
      if (const fs::path list = directory / "labels.txt"; !directory.empty() && is_there_as_file(list))
        return list.string();
    return "";
  }

  // A training that starts from all variables of another run: as many classes, so that their shapes fit, tell
  // nothing of their names. What begins anew is named by the run itself.
  void warn_of_other_classes(const Session& session) const {
    const std::string path = list_of_run(session);
    const auto is_own = [&] { return path == (std::filesystem::path(session.log_dir()) / "labels.txt"); };
    if (path.empty() || is_own() || session.restored_variable_names() != session.variable_names()) return;
    std::vector<std::string> before;
    try {
      before = data::read_label_names(path);
    } catch (const Error& error) {  // a list of another kind beside the variables is nobody's fault
      log_warning(fmt::format("whether '{}' was trained for the same classes is not known: {}",
                              session.checkpoint(), error.what()));
      return;
    }
    if (before.size() != names_.size() || before == names_) return;
    log_warning(fmt::format(
        "'{}' was trained for other classes, as '{}' says ({}), and all variables start from it, those of "
        "the layer that gives the answers, too: it begins with what it has learnt of the classes of before. "
        "checkpoint_exclude_patterns leaves variables out (model.pretrained of image_classifier those of "
        "that layer), so that they begin anew",
        session.checkpoint(), path, first_difference(before)));
  }

  void require_same(const std::string& path) const {
    const std::vector<std::string> before = data::read_label_names(path);
    if (before == names_) return;
    throw DataError(
        fmt::format("'{}' says that the run was trained with {} classes, the data has {} now; the first "
                    "difference is {}. Give it the classes of before, or begin anew "
                    "in another log_dir",
                    path, before.size(), names_.size(), first_difference(before)));
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

}  // namespace mox
