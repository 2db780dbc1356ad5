// Each operation under each fault: what ends well is right, what does not says so; nothing half is under a
// final name, nothing of the source is lost, and every case ends. MOX_FAULT_SEEDS (default 1) says how many
// random variants of each are tried, beginning with MOX_FAULT_FIRST_SEED (default 0): most of the time is
// waiting, so several processes share many seeds well.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/open_file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"

namespace mox::file {
namespace {

using testing_store::Fault;
using testing_store::Happening;

constexpr size_t kLargeSize = (17 << 20) + 11;  // uploaded in three parts

class FaultMatrix : public testing::Test {
 protected:
  FaultMatrix() {
    store_.server.put("bucket", "small", small_);
    store_.server.put("bucket", "old", "old");
    for (int i = 0; i < 5; ++i) store_.server.put("bucket", "tree/" + std::to_string(i), small_);
    directory_.write("small", small_);
    directory_.write("large", large_);
    for (int i = 0; i < 5; ++i) directory_.write("tree/" + std::to_string(i), small_);
    copy(directory_.file("large"), "s3://bucket/large");
    store_.server.set_page(2);
    auto options = store_.options();
    options.stall_s = 0.5;
    store_.use(options);
  }

  // The object is the content, or as it was ("" for none), never anything else.
  void expect_whole(const std::string& key, const std::string& content, const std::string& before,
                    bool ended_well) {
    const auto found = store_.server.content("bucket", key);
    const bool whole = found && *found == content;
    const bool as_before = before.empty() ? !found : found && *found == before;
    EXPECT_TRUE(whole || (!ended_well && as_before)) << key << (found ? "" : " is missing");
  }
  void expect_whole_file(const std::string& name, const std::string& content, bool ended_well) {
    const bool there = std::filesystem::exists(directory_.file(name));
    const bool whole = there && read(directory_.file(name)) == content;
    EXPECT_TRUE(whole || (!ended_well && !there)) << name << (there ? "" : " is missing");
  }
  void expect_sources() {
    EXPECT_EQ(read(directory_.file("small")), small_);
    EXPECT_TRUE(read(directory_.file("large")) == large_);
    EXPECT_EQ(*store_.server.content("bucket", "small"), small_);
    EXPECT_TRUE(*store_.server.content("bucket", "large") == large_);
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(*store_.server.content("bucket", "tree/" + std::to_string(i)), small_);
  }

  struct Operation {
    std::string name;
    std::function<void()> run;
    std::function<void(bool ended_well)> check;
  };
  std::vector<Operation> operations();

  const std::string small_ = random_bytes(3001), large_ = random_bytes(kLargeSize, 2);
  StoreFixture store_;
  TemporaryDirectory directory_;
};

std::vector<FaultMatrix::Operation> FaultMatrix::operations() {
  const auto local = [this](const std::string& name) { return directory_.file(name); };
  return {
      {"read", [] { EXPECT_EQ(read("s3://bucket/small").size(), 3001u); }, [](bool) {}},
      {"read, large", [this] { EXPECT_TRUE(read("s3://bucket/large") == large_); }, [](bool) {}},
      {"write", [this] { write("s3://bucket/old", small_); },
       [this](bool well) { expect_whole("old", small_, "old", well); }},
      {"write, large", [this] { write("s3://bucket/old", large_); },
       [this](bool well) { expect_whole("old", large_, "old", well); }},
      {"append", [] { append("s3://bucket/old", " and new"); },
       [this](bool well) { expect_whole("old", "old and new", "old", well); }},
      {"append, of OBS", [] { append("obs://bucket/log", "line"); },
       [this](bool well) { expect_whole("log", "line", "", well); }},
      {"exists and stat",
       [] {
         EXPECT_EQ(stat("s3://bucket/small").length, 3001);
         EXPECT_TRUE(is_directory("s3://bucket/tree"));
         EXPECT_FALSE(exists("s3://bucket/none"));
       },
       [](bool) {}},
      {"list", [] { EXPECT_EQ(list_directory("s3://bucket/tree").size(), 5u); }, [](bool) {}},
      {"upload", [=] { copy(local("small"), "s3://bucket/up"); },
       [this](bool well) { expect_whole("up", small_, "", well); }},
      {"upload, large", [=] { copy(local("large"), "s3://bucket/up"); },
       [this](bool well) { expect_whole("up", large_, "", well); }},
      {"upload of a tree", [=] { copy_parallel(local("tree"), "s3://bucket/up"); },
       [this](bool well) {
         for (int i = 0; i < 5; ++i) expect_whole("up/" + std::to_string(i), small_, "", well);
       }},
      {"download", [=] { copy("s3://bucket/small", local("down")); },
       [this](bool well) { expect_whole_file("down", small_, well); }},
      {"download, large", [=] { copy("s3://bucket/large", local("down")); },
       [this](bool well) { expect_whole_file("down", large_, well); }},
      {"download of a tree", [=] { copy_parallel("s3://bucket/tree", local("down")); },
       [this](bool well) {
         for (int i = 0; i < 5; ++i) expect_whole_file("down/" + std::to_string(i), small_, well);
       }},
      {"copy in the store", [] { copy_parallel("s3://bucket/tree", "s3://bucket/up"); },
       [this](bool well) {
         for (int i = 0; i < 5; ++i) expect_whole("up/" + std::to_string(i), small_, "", well);
       }},
      {"rename", [] { rename("s3://bucket/old", "s3://bucket/new"); },
       [this](bool well) {
         const auto old = store_.server.content("bucket", "old"),
                    now = store_.server.content("bucket", "new");
         EXPECT_TRUE((old && *old == "old") || (now && *now == "old"));  // one of them at every moment
         EXPECT_TRUE(!well || (now && !old));
       }},
      {"remove a tree", [] { remove("s3://bucket/old", true); },
       [this](bool well) { EXPECT_TRUE(!well || !store_.server.content("bucket", "old")); }},
      {"a file, written",
       [this] {
         File file("s3://bucket/old", "w");
         file.write(small_);
         file.close();
       },
       [this](bool well) { expect_whole("old", small_, "old", well); }},
  };
}

void clean(StoreFixture& store, const TemporaryDirectory& directory) {
  for (const std::string& key : store.server.keys("bucket"))
    if (key.starts_with("up") || key == "new" || key == "log") remove("s3://bucket/" + key);
  store.server.put("bucket", "old", "old");
  for (const char* name : {"down", "down.moxing.part", "down.moxing.part.journal"})
    std::filesystem::remove_all(directory.file(name));
}

TEST_F(FaultMatrix, NothingHalfNothingLostNothingHangs) {
  const auto number = [](const char* name, int otherwise) {
    const char* given = std::getenv(name);
    return given ? std::atoi(given) : otherwise;
  };
  const int seeds = number("MOX_FAULT_SEEDS", 1), first_seed = number("MOX_FAULT_FIRST_SEED", 0);
  const std::vector<Operation> all = operations();
  std::map<std::string, std::map<Fault, int>> ended_well;
  double longest = 0;
  for (int seed = first_seed; seed < first_seed + seeds; ++seed) {
    for (size_t i = 0; i < all.size(); ++i) {
      for (const Fault fault : testing_store::all_faults()) {
        SCOPED_TRACE(all[i].name + " under " + std::string(name_of(fault)) + ", seed " +
                     std::to_string(seed));
        // Some requests suffer, a few in a row; which and where the seed decides.
        std::mt19937 random(static_cast<unsigned>(seed * 10'007) + static_cast<unsigned>(i * 101) +
                            static_cast<unsigned>(fault));
        const int64_t first = seed == 0 ? 0 : static_cast<int64_t>(random() % 3);
        const int64_t last = first + (fault == Fault::kStandstill ? 0 : static_cast<int64_t>(random() % 3));
        store_.proxy.set_plan([=](const std::string&, int64_t number) mutable -> Happening {
          if (number < first || number > last) return {};
          return {fault, std::uniform_real_distribution<double>(0, 1)(random)};
        });
        const auto begin = std::chrono::steady_clock::now();
        bool well = false;
        try {
          all[i].run();
          well = true;
        } catch (const Error& error) {
          EXPECT_STRNE(error.what(), "");
        }
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        longest = std::max(longest, seconds);
        store_.proxy.set_plan({});
        store_.proxy.wait_until_idle();  // else what was given up may come when the next case has begun
        ended_well[all[i].name][fault] += well;
        all[i].check(well);
        clean(store_, directory_);
        expect_sources();
        if (HasFailure()) return;
      }
    }
  }
  std::cout << "of " << seeds << " runs each from seed " << first_seed
            << ", ended well; the others with an error (longest " << longest << " s)\n";
  size_t column = 0;
  for (const Fault fault : testing_store::all_faults())
    std::cout << "  " << static_cast<char>('a' + column++) << " " << name_of(fault) << "\n";
  std::cout << std::string(20, ' ');
  for (size_t i = 0; i < column; ++i) std::cout << "   " << static_cast<char>('a' + i);
  std::cout << "\n";
  for (const Operation& operation : all) {
    std::cout << std::left << std::setw(20) << operation.name << std::right;
    for (const Fault fault : testing_store::all_faults())
      std::cout << std::setw(4) << ended_well[operation.name][fault];
    std::cout << "\n";
  }
}

TEST_F(FaultMatrix, AStoreThatIsAwayIsAnErrorWithinTheDeadline) {
  auto options = store_.options();
  options.attempts = 4;
  store_.use(options);
  store_.proxy.set_away(true);
  for (const Operation& operation : operations()) {
    EXPECT_THROW(operation.run(), IoError) << operation.name;
    operation.check(false);
  }
  store_.proxy.set_away(false);
  EXPECT_EQ(read("s3://bucket/small"), small_);
}

TEST_F(FaultMatrix, RefusalsAreNotRepeatedAndSayWhatTheStoreSays) {
  testing_store::Keys other;
  other.secret = "another";
  store_.server.set_keys(other);
  const int64_t before = store_.server.requests();
  const std::string text = message_of<IoError>([] { write("s3://bucket/x", "abc"); });
  EXPECT_EQ(store_.server.requests(), before + 1);
  EXPECT_THAT(text, testing::AllOf(testing::HasSubstr("PutObject of 's3://bucket/x'"),
                                   testing::HasSubstr("403 SignatureDoesNotMatch"),
                                   testing::HasSubstr("request id REQ"), testing::HasSubstr("attempt 1 of")));
}

TEST(ClockTest, OfAMachineThatGoesWrongIsMended) {
  testing_store::S3Server::Options an_hour_ahead;
  an_hour_ahead.clock_skew_s = 3600;
  StoreFixture store(an_hour_ahead);
  write("s3://bucket/x", "abc");
  EXPECT_EQ(read("s3://bucket/x"), "abc");
  EXPECT_TRUE(exists("s3://bucket/x"));
}

TEST(SecretsTest, AreInNoText) {
  StoreFixture store;
  testing_store::Keys other;
  other.access = "another";
  store.server.set_keys(other);
  const testing_store::Keys keys;
  for (const auto& call : std::vector<std::function<void()>>{[] { read("s3://bucket/x"); },
                                                             [] { list_directory("s3://bucket/x"); },
                                                             [] { write("s3://bucket/x", "a"); }}) {
    const std::string text = message_of<IoError>(call);
    EXPECT_EQ(text.find(keys.secret), std::string::npos) << text;
    EXPECT_EQ(text.find(keys.access), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace mox::file
