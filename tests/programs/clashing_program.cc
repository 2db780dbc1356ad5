// A program that defines a flag of a name that is taken: CLASH says which, and whether before main.
#include <moxing/moxing.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

const std::string clash = std::getenv("CLASH") ? std::getenv("CLASH") : "";

const bool is_defined_before_main = [] {
  if (clash == "before_main") mox::define_flag("auto_batch", true, "Whether to batch.");
  if (clash == "read_before_main") return mox::get_flag<bool>("auto_batch");
  return true;
}();

}  // namespace

int main(int argc, char** argv) {
  if (clash == "in_main") mox::define_flag("auto_batch", true, "Whether to batch.");
  if (clash == "section") mox::define_flag("optimizer", "sgd", "The optimizer.");
  if (clash == "own") {
    mox::define_flag("units", 1, "Units.");
    mox::define_flag("units", 2, "Units.");
  }
  if (clash == "gives_way") mox::define_flag("freeze", true, "Whether the program freezes.");
  mox::init(argc, argv);
  if (clash == "gives_way")
    std::printf("freeze %s, to be frozen %s\n", mox::flag("freeze").c_str(),
                mox::flag("moxing.freeze").c_str());
  return is_defined_before_main ? 0 : 1;
}
