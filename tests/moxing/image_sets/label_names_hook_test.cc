#include "moxing/image_sets/label_names_hook.h"

#include <gmock/gmock-more-matchers.h>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using LabelNamesHook = SmallRun;
using testing::HasSubstr;

TEST_F(LabelNamesHook, WritesTheMappingAndRefusesAnother) {
  RunSpec run = spec();
  run.hooks = {label_names_hook({"daisy", "rose", "tulip"})};
  run_or_throw(run);
  EXPECT_EQ(read_file(log_dir_ + "/labels.txt"), "0: daisy\n1: rose\n2: tulip\n");

  run.max_number_of_steps = 6;
  run_or_throw(run);  // the same names

  run.max_number_of_steps = 8;
  run.hooks = {label_names_hook({"daisy", "tulip", "rose"})};
  EXPECT_THAT(message_of_run<DataError>(run), HasSubstr("label 1: 'rose' before, 'tulip' now"));
  run.hooks = {label_names_hook({"daisy", "rose"})};
  EXPECT_THAT(message_of_run<DataError>(run), HasSubstr("label 2: 'tulip' before, nothing now"));
  EXPECT_EQ(read_file(log_dir_ + "/labels.txt"), "0: daisy\n1: rose\n2: tulip\n");
}

}  // namespace
}  // namespace mox
