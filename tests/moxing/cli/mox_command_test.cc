// The program build/bin/mox.
#include <fmt/format.h>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/checkpoint/checkpoint_samples.h"
#include "tests/support/without_privileges.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

struct Result {
  int status = 0;
  std::string out;
  std::string err;
};

Result run_mox(const std::string& arguments) {
  const std::string out = fresh_directory("mox_out"), err = fresh_directory("mox_err");
  const std::string command = MOX_BINARY_DIR "/bin/mox " + arguments + " >" + out + " 2>" + err;
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
}

void expect_refused(const std::string& arguments, const std::string& says, int status = 2) {
  const Result result = run_mox(arguments);
  EXPECT_EQ(result.status, status) << arguments;
  EXPECT_THAT(result.err, AllOf(StartsWith("mox: "), HasSubstr(says))) << arguments;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << "one paragraph: " << result.err;
}

class MoxCommand : public testing::Test {
 protected:
  void SetUp() override {
    save_checkpoint(log_dir_, sample_checkpoint(10, 1));
    save_checkpoint(log_dir_, sample_checkpoint(20, 2));
  }
  const std::string log_dir_ = fresh_directory("mox_command");
};

TEST_F(MoxCommand, HelpExplainsNames) {
  EXPECT_THAT(run_mox("help relu").out, HasSubstr("Tensor relu(const Tensor& x)"));
  EXPECT_THAT(run_mox("help convert").out, HasSubstr("--shards"));
  EXPECT_EQ(run_mox("help").out, run_mox("--help").out);
  EXPECT_EQ(run_mox("help file cp").out, run_mox("file cp --help").out);
  EXPECT_EQ(run_mox("help file cp").status, 0);
  expect_refused("help rleu", "is 'relu' meant?");
  expect_refused("help a_name_that_nothing_has", "docs/reference lists them");
}

TEST_F(MoxCommand, ShowsWhatATerminalWouldObey) {
  const Result missing = run_mox("file cat '/none\x1b[2J\nmox: all is well'");
  EXPECT_THAT(missing.err, AllOf(StartsWith("mox: "), HasSubstr("/none\\x1b[2J\n  mox: all is well'")));
  Checkpoint hostile = sample_checkpoint(30, 1);
  hostile.variables[0].name = "layer/\x1b[31mweights\nglobal step: 7";
  hostile.state["\x1b[2J"] = "1";
  save_checkpoint(log_dir_, hostile);
  const Result shown = run_mox("checkpoint show " + log_dir_);
  EXPECT_THAT(shown.out, AllOf(HasSubstr("layer/\\x1b[31mweights\\nglobal step: 7"),
                               HasSubstr("\n  \\x1b[2J: "), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(shown.status, 0) << shown.err;
}

// Programs get names as they are.
TEST_F(MoxCommand, ListsNamesForATerminalOrForPrograms) {
  const std::string folder = fresh_directory("mox_names");
  make_directories(folder);
  write_file_atomically(folder + "/a\x1b[31m\nb", "");
  EXPECT_EQ(run_mox("file ls " + folder).out, "a\x1b[31m\nb\n");
  int controlling = -1, terminal = -1;
  ASSERT_EQ(::openpty(&controlling, &terminal, nullptr, nullptr, nullptr), 0);
  const std::string command =
      fmt::format("{}/bin/mox file ls {} >/dev/fd/{}", MOX_BINARY_DIR, folder, terminal);
  EXPECT_EQ(std::system(command.c_str()), 0);
  char text[200];
  const ssize_t size = ::read(controlling, text, sizeof text);
  EXPECT_EQ(std::string(text, static_cast<size_t>(std::max<ssize_t>(size, 0))), "a\\x1b[31m\\nb\r\n");
  ::close(terminal);
  ::close(controlling);
}

// Programs read the same name from it.
TEST_F(MoxCommand, ListsNamesAsJsonOfAsciiAlone) {
  const std::string folder = fresh_directory("mox_json_names");
  make_directories(folder);
  write_file_atomically(folder + "/c\u009b\u202e", "");
  const std::string listed = run_mox("file ls --json " + folder).out;
  EXPECT_THAT(listed, HasSubstr("/c\\u009b\\u202e\""));
  EXPECT_TRUE(std::ranges::none_of(listed, [](char letter) { return letter < 0; })) << listed;
}

// A terminal that has gone away, or a log on a full disk, is no reason to crash.
TEST_F(MoxCommand, ThatCannotSayWhatIsWrongEndsWithItsStatus) {
  for (const char* arguments : {"file cat /none", "file", "file ls / --nothing"}) {
    const int status =
        std::system((std::string(MOX_BINARY_DIR "/bin/mox ") + arguments + " 2>/dev/full").c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << arguments << ": " << status;
  }
}

TEST_F(MoxCommand, SaysItsVersion) {
  const Result result = run_mox("--version");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, testing::MatchesRegex("mox \\(moxing [0-9]+\\.[0-9]+\\.[0-9]+\\)\n"));
}

TEST_F(MoxCommand, HelpKeepsToTheWidth) {
  for (const int width : {40, 80, 100}) {
    ::setenv("COLUMNS", std::to_string(width).c_str(), 1);
    for (const char* arguments : {"--help", "launch --help", "help convert", "help"}) {
      const std::string help = run_mox(arguments).out;
      EXPECT_THAT(help, HasSubstr("--"));
      for (size_t start = 0; start < help.size(); start = help.find('\n', start) + 1)
        EXPECT_LE(help.find('\n', start) - start, static_cast<size_t>(width)) << help.substr(start, 120);
    }
  }
  ::unsetenv("COLUMNS");
  const std::string help = run_mox("--help").out;  // into a file
  for (size_t start = 0; start < help.size(); start = help.find('\n', start) + 1)
    EXPECT_LE(help.find('\n', start) - start, 80U) << help.substr(start, 120);
}

TEST_F(MoxCommand, HelpShowsEverySubcommand) {
  for (const char* flag : {"--help", "-h"}) {
    const Result result = run_mox(flag);
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.err, IsEmpty());
    for (const char* word : {"checkpoint", "show", "list", "verify", "digest"})
      EXPECT_THAT(result.out, HasSubstr(word));
  }
  EXPECT_THAT(run_mox("checkpoint show --help").out, HasSubstr("DIR"));
}

// What neither a state nor a checkpoint holds, and without which a network gives other outputs.
TEST_F(MoxCommand, HelpNamesTheEpsilonThatNoStateHolds) {
  for (const char* command : {"import", "export-torch"})
    EXPECT_THAT(run_mox(std::string(command) + " --help").out,
                AllOf(HasSubstr("1e-5"), HasSubstr("batch_norm_epsilon")));
}

TEST_F(MoxCommand, ShowPrintsTheTable) {
  for (const std::string& path : {log_dir_, log_dir_ + "/checkpoint-20"}) {
    const Result result = run_mox("checkpoint show " + path);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out,
                AllOf(HasSubstr("checkpoint: " + log_dir_ + "/checkpoint-20\n"),
                      HasSubstr("global step: 20\n"), HasSubstr("variables: 2 (4 parameters, 16 bytes)"),
                      HasSubstr("  layer/weights  float32   [3]               3              12  verified"),
                      HasSubstr("layer/weights/momentum"), HasSubstr("  seed: 7\n")));
  }
}

TEST_F(MoxCommand, DigestPrintsTheDigestAlone) {
  EXPECT_EQ(run_mox("checkpoint digest " + log_dir_).out, checkpoint_digest(log_dir_) + "\n");
  EXPECT_NE(run_mox("checkpoint digest " + log_dir_ + "/checkpoint-10").out,
            checkpoint_digest(log_dir_) + "\n");
}

TEST_F(MoxCommand, ListPrintsALineForEach) {
  const Result result = run_mox("checkpoint list " + log_dir_);
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, testing::MatchesRegex(" +step +bytes +path\n +10 +[0-9]+ .*checkpoint-10\n"
                                                " +20 +[0-9]+ .*checkpoint-20\n"));
}

TEST_F(MoxCommand, ListGivesNoSizeOfWhatItCannotLookInto) {
  namespace fs = std::filesystem;
  const std::string locked = log_dir_ + "/checkpoint-10";
  fs::permissions(log_dir_, fs::perms(0755));
  fs::permissions(locked, fs::perms(0));
  // The build may be in a home that others may not enter.
  const std::string program = log_dir_ + "/mox";
  fs::copy_file(MOX_BINARY_DIR "/bin/mox", program);
  const std::string said = message_without_privileges<Error>([&] {
    const std::unique_ptr<FILE, int (*)(FILE*)> mox(
        ::popen((program + " checkpoint list " + log_dir_).c_str(), "r"), ::pclose);
    char text[4096];
    throw Error(std::string(text, std::fread(text, 1, sizeof text, mox.get())));
  });
  EXPECT_THAT(said, testing::MatchesRegex(" +step +bytes +path\n +10 +[?] .*checkpoint-10\n"
                                          " +20 +[0-9]+ .*checkpoint-20\n"));
  fs::permissions(locked, fs::perms(0755));
}

TEST_F(MoxCommand, VerifyFindsTheDamagedOne) {
  EXPECT_EQ(run_mox("checkpoint verify " + log_dir_).status, 0);
  const std::string file = log_dir_ + "/checkpoint-20/variables.safetensors";
  std::string content = read_file(file);
  content.back() ^= 1;
  write_file_atomically(file, content);
  expect_refused("checkpoint verify " + log_dir_, "1 of 2 checkpoints cannot be used", 1);
  EXPECT_THAT(run_mox("checkpoint verify " + log_dir_).out,
              AllOf(HasSubstr("intact   " + log_dir_ + "/checkpoint-10\n"),
                    HasSubstr("damaged  " + log_dir_ + "/checkpoint-20: "), HasSubstr(file)));
  EXPECT_EQ(run_mox("checkpoint verify " + log_dir_ + "/checkpoint-10").status, 0);
  for (const char* command : {"show", "digest"}) {
    expect_refused("checkpoint " + std::string(command) + " " + log_dir_, "tensor 'layer/weights'", 1);
    EXPECT_THAT(run_mox("checkpoint " + std::string(command) + " " + log_dir_).out, IsEmpty());
  }
}

// As programs end: what is refused, or not there, would be so again; what failed may go well another time.
TEST_F(MoxCommand, MistakesAreOneParagraphAndStatusTwo) {
  expect_refused("launch -n 0 -- /bin/true", "mox: -n: Value 0 not in range");
  expect_refused("launch -n 2", "PROGRAM is required");
  expect_refused("launch -n 2 --", "PROGRAM is required");
  expect_refused("launch -n 2 --hosts /nowhere -- /bin/true", "/nowhere");
  expect_refused("launch -n 2 /bin/true --config=x",
                 "'--config'; what belongs to the program comes after --, as in mox launch -n 2 -- PROGRAM");
  expect_refused("completion fish", "fish");
  expect_refused("convert " + log_dir_ + "/missing " + log_dir_ + "/records", log_dir_ + "/missing");
  expect_refused("convert " + log_dir_ + " " + log_dir_ + "/records --shards none", "shards");
  for (const std::string prefix : {"/", "/.", "/.."})
    expect_refused("convert " + log_dir_ + " " + log_dir_ + prefix, log_dir_ + prefix + "', a directory");
  expect_refused("convert " + log_dir_ + " s3://bucket/records/", "'s3://bucket/records/', a directory");
  expect_refused("import --model no_such_network " + log_dir_ + "/missing " + log_dir_, "/missing");
  expect_refused("export-torch --model no_such_network " + log_dir_ + " " + log_dir_ + "/x.safetensors",
                 "no_such_network");
  expect_refused("file cp " + log_dir_ + " " + log_dir_ + "/copy", "-r copies it");
  expect_refused("file rm " + log_dir_ + "/missing", log_dir_ + "/missing");
  expect_refused("file sync " + log_dir_ + "/checkpoint-20/state.json " + log_dir_ + "/x", "no directory");
  expect_refused("forecast " + log_dir_ + "/missing", log_dir_ + "/missing");
  expect_refused("", "subcommand is required");
  expect_refused("checkpoint", "subcommand is required");
  expect_refused("checkpoint show", "DIR is required");
  expect_refused("checkpoint paint " + log_dir_, "there is no command 'mox checkpoint paint'; there are ");
  expect_refused("chekpoint list",
                 "there is no command 'mox chekpoint': did you mean 'checkpoint'? There are ");
  expect_refused("checkpoint shwo " + log_dir_, "'mox checkpoint shwo': did you mean 'show'? There are ");
  expect_refused("xyzzy", "there is no command 'mox xyzzy'; there are checkpoint, ");
  expect_refused("launch --max-restart 3 -- true",
                 "there is no option '--max-restart': did you mean '--max-restarts'?");
  expect_refused("convert --shard=2 a b", "there is no option '--shard': did you mean '--shards'?");
  expect_refused("file cp a", "TO is required. `mox file cp --help`");
  expect_refused("checkpoint show --colour " + log_dir_, "--colour");
  for (const char* command : {"show", "digest", "list", "verify"})
    expect_refused("checkpoint " + std::string(command) + " " + log_dir_ + "/missing", log_dir_ + "/missing");
  expect_refused("checkpoint list " + log_dir_ + "/checkpoint-20/state.json", "name a directory");
}

// Not as one of CLI11's lists: of `rm '[ab]'` that would remove the file `ab`.
TEST_F(MoxCommand, AWordInBracketsIsTheNameOfAFile) {
  const std::string folder = fresh_directory("mox_names");
  make_directories(folder);
  const auto write = [&](const std::string& name) {
    write_file_atomically(folder + "/" + name, name + "\n");
  };
  const auto run_there = [&](const std::string& arguments) {
    const std::string command = "cd " + folder + " && " + MOX_BINARY_DIR "/bin/mox " + arguments;
    const std::string out = fresh_directory("mox_out");
    const int status = std::system((command + " >" + out + " 2>/dev/null").c_str());
    return Result{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), ""};
  };
  for (const std::string name : {"[ab]", "ab", "[a,b]", "a", "b", "[[cc]]", "{}", "%%", "\x1f"}) write(name);
  EXPECT_EQ(run_there("file cat '[ab]' ab").out, "[ab]\nab\n");
  EXPECT_EQ(run_there("file cat '[a,b]'").out, "[a,b]\n");
  EXPECT_EQ(run_there("file cat -- '{}' '[[cc]]' '%%' '\x1f'").out, "{}\n[[cc]]\n%%\n\x1f\n");
  EXPECT_EQ(run_there("file cat '{}'").out, "{}\n");
  EXPECT_EQ(run_there("file stat '[[cc]]'").status, 0);
  EXPECT_EQ(run_there("file cp '[[cc]]' '[dd]'").status, 0);
  EXPECT_EQ(run_there("file cat '[dd]'").out, "[[cc]]\n");
  for (const std::string words : {"'[ab]'", "-- '[a,b]'", "'{}' '[[cc]]'"})
    EXPECT_EQ(run_there("file rm " + words).status, 0) << words;
  EXPECT_EQ(run_there("file ls .").out, "\x1f\n%%\n[dd]\na\nab\nb\n");
  EXPECT_EQ(run_there("file rm '[ab]'").status, 2) << "it has gone";
  EXPECT_EQ(run_there("file cat ab").out, "ab\n");
  expect_refused("'[ab]'", "there is no command 'mox [ab]'");
  expect_refused("help '[relu]'", "there is no '[relu]'");
  expect_refused("launch -n '[3]' -- true", "Value [3] not in range");
}

TEST_F(MoxCommand, OutputThatCannotBeWrittenIsAnError) {
  const std::string command =
      MOX_BINARY_DIR "/bin/mox checkpoint digest " + log_dir_ + " >/dev/full 2>/dev/null";
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

}  // namespace
}  // namespace mox
