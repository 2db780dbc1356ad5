// kill -9 at random moments of a copy, each way, and the same command again: complete at the end, nothing
// half under a final name at any moment, and of what travelled no more is sent again than what was under way.
// MOX_KILLS (default 6) says at how many moments.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "moxing/file/file.h"
#include "runtime/base/file.h"
#include "tests/programs/object_store/store_of_programs.h"
#include "tests/programs/training.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kThreads = 2, kPart = 8 << 20;
constexpr int64_t kUnderWay = kThreads * kPart;
// Of a run: the listings, and the heads of requests and answers.
constexpr int64_t kAround = 256 << 10;

class KilledCopy : public testing::TestWithParam<bool> {
 protected:
  KilledCopy() {
    files_["large"] = noise(96 << 20, 1);
    for (unsigned i = 0; i < 40; ++i) files_["small/" + std::to_string(i)] = noise(10'000, i + 2);
    for (const auto& [name, content] : files_) {
      total_ += static_cast<int64_t>(content.size());
      if (up())
        directory_.write("tree/" + name, content);
      else
        store_.server.put("bucket", "tree/" + name, content);
    }
    store_.proxy.set_plan([](const std::string& operation, int64_t) {
      if (operation == "UploadPart" || operation == "GetObject")
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return testing_store::Happening{};
    });
  }
  static bool up() { return GetParam(); }
  std::string here() const { return directory_.file("tree"); }
  Words command() const {
    const std::string there = "s3://bucket/tree";
    return Words{"mox", "file", "cp", "-r", "--threads=2"} +
           (up() ? Words{here(), there} : Words{there, here()});
  }

  int64_t moved() const { return up() ? store_.proxy.bytes_from_clients() : store_.proxy.bytes_to_clients(); }
  // Bytes of the content that need not travel again: up, what the store has taken of files and parts; down,
  // what is noted in the journal or has its name.
  int64_t kept() const {
    if (up()) return store_.server.received_bytes() - forgotten_;
    int64_t bytes = 0;
    for (const auto& [name, content] : files_)
      if (fs::exists(here() + "/" + name)) bytes += static_cast<int64_t>(content.size());
    std::ifstream journal(here() + "/large.moxing.part.journal");
    std::string line;
    std::getline(journal, line);  // what it is about
    while (std::getline(journal, line) && !journal.eof()) bytes += kPart;
    return bytes;
  }
  void expect_nothing_half() const {
    for (const auto& [name, content] : files_) {
      if (up()) {
        const auto found = store_.server.content("bucket", "tree/" + name);
        ASSERT_TRUE(!found || *found == content) << name;
      } else if (fs::exists(here() + "/" + name)) {
        ASSERT_TRUE(read_file(here() + "/" + name) == content) << name;
      }
    }
  }
  void expect_all() const {
    for (const auto& [name, content] : files_)
      ASSERT_TRUE(up() ? *store_.server.content("bucket", "tree/" + name) == content
                       : read_file(here() + "/" + name) == content)
          << name;
    ASSERT_EQ(store_.server.uploads_under_way(), 0);
    ASSERT_EQ(kept(), total_);
  }
  void remove_copies() {
    if (up())
      ASSERT_EQ(run_process({"mox", "file", "rm", "-r", "s3://bucket/tree"}).status, 0);
    else
      fs::remove_all(here());
    store_.proxy.wait_until_clients_are_gone();
    forgotten_ = up() ? store_.server.received_bytes() : 0;
  }

  std::map<std::string, std::string> files_;
  int64_t total_ = 0, forgotten_ = 0;
  StoreOfPrograms store_;
  TemporaryDirectory directory_;
};
INSTANTIATE_TEST_SUITE_P(Ways, KilledCopy, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Up" : "Down"; });

TEST_P(KilledCopy, GoesOn) {
  const char* given = std::getenv("MOX_KILLS");
  const int kills = given ? std::atoi(given) : 6;
  const ProcessResult whole = run_process(command());
  ASSERT_EQ(whole.status, 0) << whole.err;
  expect_all();
  remove_copies();
  if (HasFatalFailure()) return;
  // Some copies come to their end, wherever they go on from.
  std::uniform_real_distribution<double> moment(0.02, 1.2 * whole.seconds);
  std::mt19937 random(7);
  int killed = 0, finished = 0, amid = 0;
  int64_t again = 0, most_again = 0;
  for (bool last = false; !last;) {
    last = killed == kills;
    const int64_t moved_before = moved(), kept_before = kept();
    Process copy(command());
    const double until = monotonic_seconds() + (last ? 100 : moment(random));
    while (copy.running() && monotonic_seconds() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const bool ended = !copy.running();
    if (!ended) copy.send(SIGKILL);
    const ProcessResult result = copy.wait();
    store_.proxy.wait_until_clients_are_gone();
    expect_nothing_half();
    if (HasFatalFailure()) return;
    // What travelled in this run and is not kept travels again.
    const int64_t lost = std::max<int64_t>(0, moved() - moved_before - (kept() - kept_before) - kAround);
    ASSERT_LE(lost, ended ? 0 : kUnderWay) << "after " << killed << " kills";
    ASSERT_LE(kept(), total_) << "something was sent again that the other side had";
    again += lost;
    most_again = std::max(most_again, lost);
    if (!ended) {
      ++killed;
      amid += kept() > 0 && kept() < total_;
      continue;
    }
    ASSERT_EQ(result.status, 0) << result.err;
    ++finished;
    expect_all();
    if (HasFatalFailure()) return;
    if (!last) remove_copies();
  }
  EXPECT_GT(amid, 0);
  std::printf(
      "%s: %d kills, %d of them when a part of the %lld bytes was there; %d copies came to their end\n"
      "  sent again: %lld bytes, a kill %lld on average and %lld at most; under way are at most %lld\n",
      up() ? "up" : "down", killed, amid, static_cast<long long>(total_), finished,
      static_cast<long long>(again), static_cast<long long>(again / std::max(1, killed)),
      static_cast<long long>(most_again), static_cast<long long>(kUnderWay));
}

}  // namespace
}  // namespace mox
