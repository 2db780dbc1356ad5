#include "moxing/hooks/hooks.h"
#include "moxing/job/distributed.h"

namespace mox {
namespace {

class BroadcastHook : public TrainingHook {
 public:
  explicit BroadcastHook(int root) : root_(root) {}
  void after_create_session(Session& session) override {
    for (const std::string& name : session.variable_names()) {
      Array value = session.variable(name);
      broadcast(value, root_);
      session.set_variable(name, value);
    }
  }

 private:
  int root_;
};

}  // namespace

std::shared_ptr<Hook> BroadcastGlobalVariablesHook(int root) { return std::make_shared<BroadcastHook>(root); }

}  // namespace mox
