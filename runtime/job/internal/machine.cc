#include "runtime/job/internal/machine.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace mox::internal {
namespace {

std::string namespace_of(const std::string& kind, const std::string& root) {
  std::error_code error;
  return std::filesystem::read_symlink(root + "/proc/self/ns/" + kind, error).string();
}

}  // namespace

Machine this_machine(const std::string& root) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  Machine machine{.name = name, .kernel = "", .network = "", .id = ""};
  std::ifstream boot_id(root + "/proc/sys/kernel/random/boot_id");
  if (!(boot_id >> machine.kernel)) machine.kernel = machine.name;
  machine.network = machine.kernel + ' ' + namespace_of("net", root);
  machine.id = machine.network + ' ' + namespace_of("pid", root);
  return machine;
}

}  // namespace mox::internal
