// A program's own flags: secrets that it is given, and names that are taken.
#include <filesystem>

#include "runtime/base/file.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kRefusedFlag = 2;

using OwnFlags = TrainingTest;

// Everything that a training writes and prints, one that fails too.
TEST_F(OwnFlags, ASecretIsNeitherWrittenNorPrinted) {
  constexpr const char* kSecret = "hunter2";
  const Words secrets = {"--api_key=hunter2", "--service_url=https://me:hunter2@example.org/",
                         "--file.endpoint=http://hunter2@example.org", "--log_level=debug"};
  const ProcessResult trained = train("secret_program", log_dir_, 4, secrets + Words{"--save_model_steps=2"});
  expect_success(trained);
  const ProcessResult failed = train("secret_program", log_dir_, 8,
                                     secrets + Words{"--checkpoint_path=https://me:hunter2@example.org/"});
  EXPECT_NE(failed.status, 0);
  const ProcessResult help = run_process(Words{"secret_program", "--help"} + secrets);
  expect_success(help);
  for (const ProcessResult* result : {&trained, &failed, &help}) {
    EXPECT_THAT(result->out, Not(HasSubstr(kSecret)));
    EXPECT_THAT(result->err, Not(HasSubstr(kSecret)));
  }
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(log_dir_)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    EXPECT_EQ(read_file(entry.path()).find(kSecret), std::string::npos) << entry.path();
  }
  EXPECT_GE(files, 5);
  const std::string kept = read_file(log_dir_ + "/configuration.yaml");
  EXPECT_THAT(kept, HasSubstr("# api_key: a secret, given but not written here"));
  EXPECT_THAT(kept, HasSubstr("https://***@example.org/"));
}

TEST_F(OwnFlags, ANameOfMoxingIsRefusedWithBothOwnersAndTheWayOut) {
  const auto clash = [](const std::string& which) {
    return run_process({"/usr/bin/env", "CLASH=" + which, MOX_BINARY_DIR "/bin/clashing_program"});
  };
  for (const std::string when : {"before_main", "in_main"})
    expect_error(clash(when),
                 {"programs/clashing_program.cc:",
                  "the flag 'auto_batch' of this program is already defined by moxing",
                  "choose another name, or leave this definition out"},
                 kRefusedFlag);
  expect_error(clash("section"),
               {"the flag 'optimizer' of this program", "'optimizer.beta1', which is defined by moxing",
                "choose another name"},
               kRefusedFlag);
  expect_error(clash("own"),
               {"the flag 'units' of this program is already defined at programs/clashing_program.cc:"},
               kRefusedFlag);
  expect_error(clash("read_before_main"), {"get_flag was called before mox::init"});
  expect_success(clash("none"));
}

// A program that was written before the option was there goes on to mean what its author says.
TEST_F(OwnFlags, TakeTheNameOfAnOptionThatDoesNothingUnlessItIsGiven) {
  const auto run = [](const Words& arguments) {
    return run_process(Words{"/usr/bin/env", "CLASH=gives_way", MOX_BINARY_DIR "/bin/clashing_program"} +
                       arguments);
  };
  const ProcessResult started = run({"--no-freeze", "--moxing.freeze=stem.*,head"});
  expect_success(started);
  EXPECT_THAT(started.out, HasSubstr("freeze false, to be frozen stem.*,head\n"));
  EXPECT_THAT(started.err, HasSubstr("--freeze is a flag of this program (programs/clashing_program.cc:"));
  EXPECT_THAT(started.err, HasSubstr("moxing's option of this name is --moxing.freeze here"));
  const ProcessResult help = run({"--help"});
  EXPECT_THAT(help.out, HasSubstr("--moxing.freeze"));
  EXPECT_THAT(help.out, HasSubstr("Whether the program freezes."));
  expect_error(run({"--freeze=stem.*"}), {"freeze", "stem.*"}, kRefusedFlag);
}

}  // namespace
}  // namespace mox
