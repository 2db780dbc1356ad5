// A program that defines a flag of a name that is taken: CLASH says which, and whether before main.
#include <moxing/moxing.h>

#include <cstdlib>
#include <string>

namespace {

const std::string clash = std::getenv("CLASH") ? std::getenv("CLASH") : "";

const bool is_defined_before_main = [] {
  if (clash == "before_main") mox::define_flag("freeze", true, "Whether to freeze.");
  if (clash == "read_before_main") return mox::get_flag<bool>("auto_batch");
  return true;
}();

}  // namespace

int main(int argc, char** argv) {
  if (clash == "in_main") mox::define_flag("freeze", true, "Whether to freeze.");
  if (clash == "section") mox::define_flag("optimizer", "sgd", "The optimizer.");
  if (clash == "own") {
    mox::define_flag("units", 1, "Units.");
    mox::define_flag("units", 2, "Units.");
  }
  mox::init(argc, argv);
  return is_defined_before_main ? 0 : 1;
}
