// mox file: what it prints, and kill -9 at any moment of a copy. MOX_KILLS (default 6) says at how many
// moments each way.
#include <signal.h>

#include <filesystem>
#include <random>
#include <thread>

#include "moxing/file/file.h"
#include "runtime/base/file.h"
#include "tests/programs/object_store/store_of_programs.h"
#include "tests/programs/training.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

std::string noise(size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (size_t i = 0; i + 8 <= size; i += 8) {
    const uint64_t word = random();
    bytes.replace(i, 8, reinterpret_cast<const char*>(&word), 8);
  }
  return bytes;
}

class FileCommand : public testing::Test {
 protected:
  ProcessResult mox(const Words& words) const { return run_process(Words{"mox", "file"} + words); }
  StoreOfPrograms store_;
  TemporaryDirectory directory_;
};

TEST_F(FileCommand, Verbs) {
  directory_.write("tree/a", "abc\n");
  directory_.write("tree/s/b", "12345");
  fs::create_directories(directory_.file("tree/empty"));
  const ProcessResult refused = mox({"cp", directory_.file("tree"), "s3://bucket/tree"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("-r copies it"));
  const ProcessResult copied = mox({"cp", "-r", "--json", directory_.file("tree"), "s3://bucket/tree"});
  EXPECT_EQ(copied.status, 0) << copied.err;
  EXPECT_THAT(copied.out, HasSubstr("\"files\":2,\"bytes\":9"));
  EXPECT_EQ(mox({"ls", "s3://bucket/tree"}).out, "a\nempty/\ns/\n");
  EXPECT_EQ(mox({"ls", "-r", "s3://bucket/tree/s"}).out, "b\n");
  EXPECT_EQ(mox({"ls", "s3://bucket/tree/*/b"}).out, "s3://bucket/tree/s/b\n");
  EXPECT_EQ(mox({"cat", "s3://bucket/tree/a", "s3://bucket/tree/s/b"}).out, "abc\n12345");
  EXPECT_THAT(mox({"stat", "--json", "s3://bucket/tree/a"}).out, HasSubstr("\"bytes\":4"));
  EXPECT_EQ(mox({"du", "s3://bucket/tree"}).out, "9 bytes in 2 files\n");
  EXPECT_EQ(mox({"cp", "s3://bucket/tree/a", directory_.path()}).status, 0);
  EXPECT_EQ(read_file(directory_.file("a")), "abc\n");
  fs::remove(directory_.file("tree/a"));
  EXPECT_THAT(mox({"sync", "--delete", directory_.file("tree"), "s3://bucket/tree"}).out,
              HasSubstr("1 removed"));
  const ProcessResult moved = mox({"mv", "--json", "s3://bucket/tree/s/b", "s3://bucket/c"});
  EXPECT_EQ(moved.status, 0) << moved.err;
  EXPECT_THAT(moved.out, HasSubstr("\"files\":1,\"bytes\":5"));
  fs::rename(directory_.file("tree"), directory_.file("other"));
  EXPECT_THAT(mox({"mv", directory_.file("other"), directory_.file("tree")}).out, HasSubstr("1 files, 5 B"));
  EXPECT_EQ(read_file(directory_.file("tree/s/b")), "12345");
  EXPECT_EQ(mox({"rm", "s3://bucket/none"}).status, 1);
  EXPECT_EQ(mox({"rm", "-r", "s3://bucket/tree"}).status, 0);
  EXPECT_EQ(store_.server.keys("bucket"), std::vector<std::string>{"c"});
  EXPECT_EQ(mox({"ls", "s3://bucket/none"}).status, 1);
}

TEST_F(FileCommand, AnInterruptLeavesNothingHalf) {
  directory_.write("large", noise(100 << 20, 1));
  store_.proxy.set_plan([](const std::string& operation, int64_t) {
    if (operation == "UploadPart") std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return testing_store::Happening{};
  });
  Process copy({"mox", "file", "cp", "--threads=2", directory_.file("large"), "s3://bucket/large"});
  ASSERT_TRUE(copy.wait_until([&] { return store_.server.requests_of("UploadPart") > 1; }));
  copy.send(SIGINT);
  const ProcessResult result = copy.wait();
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("cancelled"));
  EXPECT_EQ(store_.server.content("bucket", "large"), nullptr);
  EXPECT_EQ(store_.server.uploads_under_way(), 0);
}

// Killed at random moments and run again: complete at the end, nothing half under a final name at any moment,
// and little sent twice.
class Killed : public FileCommand, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Ways, Killed, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Up" : "Down"; });

TEST_P(Killed, GoesOn) {
  const char* given = std::getenv("MOX_KILLS");
  const int kills = given ? std::atoi(given) : 6;
  const std::string large = noise(48 << 20, 1);
  const std::string here = directory_.file("tree"), there = "s3://bucket/tree";
  std::vector<std::pair<std::string, std::string>> files{{"large", large}};
  for (int i = 0; i < 40; ++i)
    files.emplace_back("small/" + std::to_string(i), noise(10'000, static_cast<unsigned>(i) + 2));
  for (const auto& [name, content] : files) {
    if (GetParam())
      directory_.write("tree/" + name, content);
    else
      store_.server.put("bucket", "tree/" + name, content);
  }
  const Words command = GetParam() ? Words{"mox", "file", "cp", "-r", "--threads=4", here, there}
                                   : Words{"mox", "file", "cp", "-r", "--threads=4", there, here};
  std::mt19937 random(7);
  int killed = 0, finished = 0;
  int64_t total = 0;
  for (const auto& file : files) total += static_cast<int64_t>(file.second.size());
  while (killed < kills) {
    Process copy(command);
    const double until = monotonic_seconds() + std::uniform_real_distribution<double>(0.02, 0.8)(random);
    while (copy.running() && monotonic_seconds() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const bool ended = !copy.running();
    copy.send(SIGKILL);
    const ProcessResult result = copy.wait();
    killed += !ended;
    for (const auto& [name, content] : files) {
      if (GetParam()) {
        const auto found = store_.server.content("bucket", "tree/" + name);
        ASSERT_TRUE(!found || *found == content) << name;
      } else if (fs::exists(here + "/" + name)) {
        ASSERT_TRUE(read_file(here + "/" + name) == content) << name;
      }
    }
    if (!ended) continue;
    ASSERT_EQ(result.status, 0) << result.err;
    ++finished;
    if (GetParam()) {
      for (const std::string& key : store_.server.keys("bucket"))
        ASSERT_EQ(mox({"rm", "s3://bucket/" + key}).status, 0);
    } else {
      fs::remove_all(here);
    }
  }
  const ProcessResult last = run_process(command);
  ASSERT_EQ(last.status, 0) << last.err;
  for (const auto& [name, content] : files)
    EXPECT_TRUE(GetParam() ? *store_.server.content("bucket", "tree/" + name) == content
                           : read_file(here + "/" + name) == content)
        << name;
  EXPECT_EQ(store_.server.uploads_under_way(), 0);
  // What travelled more than once is what was under way: at most a part for each of the four threads, each
  // time.
  constexpr int64_t kThreads = 4, kParts = 46, kPart = 8 << 20;
  const int64_t again = GetParam() ? store_.server.received_bytes() - (finished + 1) * total
                                   : store_.server.requests_of("GetObject") - (finished + 1) * kParts;
  EXPECT_GE(again, 0);
  EXPECT_LE(again, killed * kThreads * (GetParam() ? kPart : 1));
  std::printf("%d kills, %d copies that ended before; %lld %s more than needed\n", killed, finished,
              static_cast<long long>(again), GetParam() ? "bytes sent" : "requests");
}

TEST_F(FileCommand, NoSecretIsInWhatIsPrinted) {
  testing_store::Keys other;
  other.secret = "another";
  store_.server.set_keys(other);
  for (const Words& words :
       {Words{"ls", "s3://bucket/x"}, Words{"cat", "s3://bucket/x"}, Words{"rm", "-r", "s3://bucket/x"}}) {
    const ProcessResult result = mox(words);
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.out + result.err,
                testing::AllOf(HasSubstr("SignatureDoesNotMatch"), Not(HasSubstr(store_.keys.secret)),
                               Not(HasSubstr(store_.keys.access))));
  }
}

}  // namespace
}  // namespace mox
