#include "moxing/file/copy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Way = std::pair<std::string, std::string>;

class Copies : public testing::TestWithParam<Way> {
 protected:
  std::string at(const std::string& kind, const std::string& name) const {
    return kind == "path" ? directory_.file(name) : kind + "://bucket/" + name;
  }
  std::string from(const std::string& name) const { return at(GetParam().first, "from/" + name); }
  std::string to(const std::string& name) const { return at(GetParam().second, "to/" + name); }
  std::string from() const { return at(GetParam().first, "from"); }
  std::string to() const { return at(GetParam().second, "to"); }
  void make_tree() {
    write(from("a"), "abc");
    write(from("empty file"), "");
    write(from("s/large"), large_);
    write(from("s/t/b c+d%e=f"), "odd");
    make_dirs(from("empty/deeper"));
  }

  StoreFixture store_;
  TemporaryDirectory directory_;
  const std::string large_ = random_bytes((17 << 20) + 3);
};

INSTANTIATE_TEST_SUITE_P(Ways, Copies,
                         testing::Values(Way("path", "path"), Way("path", "s3"), Way("s3", "path"),
                                         Way("s3", "obs")),
                         [](const auto& info) { return info.param.first + "_to_" + info.param.second; });

TEST_P(Copies, ATree) {
  make_tree();
  CopyProgress last;
  const CopyReport report =
      copy_parallel(from(), to(), {.on_progress = [&](const CopyProgress& now) { last = now; }});
  EXPECT_THAT(
      list_directory(to(), {.recursive = true}),
      ElementsAre("a", "empty", "empty file", "empty/deeper", "s", "s/large", "s/t", "s/t/b c+d%e=f"));
  EXPECT_TRUE(is_directory(to("empty/deeper")));
  EXPECT_EQ(read(to("a")), "abc");
  EXPECT_EQ(read(to("s/t/b c+d%e=f")), "odd");
  EXPECT_TRUE(read(to("s/large")) == large_);
  EXPECT_EQ(report.files, 4);
  EXPECT_EQ(report.same_files, 0);
  EXPECT_EQ(report.bytes, static_cast<int64_t>(large_.size()) + 6);
  EXPECT_EQ(last.files, 4);
  EXPECT_EQ(last.files_total, 4);
  EXPECT_EQ(last.bytes_total, report.bytes);

  const CopyReport again = copy_parallel(from(), to());
  // A copy within a store has an ETag of another kind than what was uploaded in parts: it is made again.
  const bool within = GetParam().second == "obs";
  EXPECT_EQ(again.same_files, within ? 3 : 4);
  EXPECT_EQ(again.sent_bytes, 0);

  // Another content of the same size is another content.
  write(from("a"), "abd");
  EXPECT_EQ(copy_parallel(from(), to()).same_files, within ? 2 : 3);
  EXPECT_EQ(read(to("a")), "abd");
  EXPECT_EQ(read(from("a")), "abd");
}

TEST_P(Copies, OneFile) {
  write(from("a"), "abc");
  write(to("b"), "what was there");
  EXPECT_EQ(copy(from("a"), to("b")).sent_bytes > 0, GetParam().second != "obs");
  EXPECT_EQ(read(to("b")), "abc");
  EXPECT_THROW(copy(from(), to("x")), FailedPrecondition);
  EXPECT_THROW(copy(from("none"), to("x")), NotFound);
  EXPECT_THROW(copy(from("a"), to("x/")), FailedPrecondition);
}

TEST_P(Copies, WhatIsListed) {
  make_tree();
  const std::string text = message_of<IoError>([&] {
    copy_parallel(from(), to(), {.file_list = {"a", "s/t/b c+d%e=f", "none", "../x"}});
  });
  EXPECT_THAT(text, HasSubstr("2 of 4 files"));
  EXPECT_THAT(text, HasSubstr("none: "));
  EXPECT_THAT(text, HasSubstr("../x: "));
  EXPECT_THAT(list_directory(to(), {.recursive = true, .skip_dir = true}), ElementsAre("a", "s/t/b c+d%e=f"));
}

TEST_P(Copies, Synchronises) {
  make_tree();
  sync(from(), to());
  remove(from("s/large"));
  remove(from("empty"), true);
  write(from("new"), "new");
  EXPECT_EQ(sync(from(), to()).removed, 0);
  EXPECT_TRUE(exists(to("s/large")));
  EXPECT_EQ(sync(from(), to(), true).removed, 1);
  EXPECT_THAT(list_directory(to(), {.recursive = true}),
              ElementsAre("a", "empty file", "new", "s", "s/t", "s/t/b c+d%e=f"));
}

// A store knows a directory only by what is in it.
TEST_P(Copies, SynchronisesWithAnEmptyDirectoryAndBack) {
  write(to("a"), "abc");
  make_dirs(from());
  EXPECT_EQ(sync(from(), to(), true).removed, 1);
  EXPECT_TRUE(is_directory(to()));
  EXPECT_EQ(sync(to(), from()).copied.files, 0);
}

TEST_P(Copies, IsCancelled) {
  make_tree();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(message_of<IoError>([&] { copy_parallel(from(), to(), {.stop = stop.get_token()}); }),
              HasSubstr("cancelled"));
  EXPECT_EQ(store_.server.uploads_under_way(), 0);
  for (const std::string& name : {to("a"), to("s/large")}) EXPECT_FALSE(exists(name));
}

TEST_P(Copies, MovesBetweenStores) {
  make_tree();
  rename(from(), to());
  EXPECT_FALSE(exists(from("a")));
  EXPECT_TRUE(read(to("s/large")) == large_);
}

TEST(CopyTest, IntoItselfIsRefused) {
  StoreFixture store;
  write("s3://bucket/a/b", "");
  EXPECT_THROW(copy_parallel("s3://bucket/a", "s3://bucket/a/c"), FailedPrecondition);
  EXPECT_THROW(copy("s3://bucket/a/b", "s3://bucket/a/b"), InvalidArgument);
}

TEST(CopyTest, NamesThatAFileSystemCannotHoldAreMissing) {
  StoreFixture store;
  TemporaryDirectory directory;
  for (const char* key : {"d/good", "d/a//b", "d/../e", "d/both", "d/both/x", "d//"})
    store.server.put("bucket", key, key);
  const std::string text = message_of<IoError>([&] { copy_parallel("s3://bucket/d", directory.file("to")); });
  EXPECT_THAT(text, HasSubstr("a//b: "));
  EXPECT_THAT(text, HasSubstr("../e: "));
  EXPECT_THAT(text, HasSubstr("both: "));
  EXPECT_THAT(list_directory(directory.file("to"), {.recursive = true}),
              ElementsAre("a", "both", "both/x", "good"));
}

// Every byte that a key may have comes back as it was, in listings and requests.
TEST(CopyTest, KeysOfEveryCharacter) {
  StoreFixture store;
  store.server.set_page(1);
  std::vector<std::string> names;
  for (int c = 1; c < 128; ++c)
    if (c != '/') names.push_back("x" + std::string(1, static_cast<char>(c)) + "y");
  for (const char* name : {"a b", " ", "a+b", "%41", "a%2Fb", "=", "a=b&c=d", "//", "a//b", "/a",
                           "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "a/./b", "a/../b", "a?b#c", "trailing/x/"})
    names.push_back(name);
  for (const std::string& name : names) {
    const std::string url = "s3://bucket/keys/" + name;
    if (name.ends_with('/'))
      make_dirs(url);
    else
      write(url, name);
    ASSERT_NE(store.server.content("bucket", "keys/" + name), nullptr) << name;
    ASSERT_TRUE(exists(url)) << name;
    if (name.ends_with('/')) continue;
    ASSERT_EQ(read(url), name);
  }
  size_t files = 0;
  for (const DirectoryEntry& entry : scan_dir("s3://bucket/keys", {.recursive = true, .skip_dir = true})) {
    ++files;
    EXPECT_EQ(read(entry.url), entry.name);
  }
  EXPECT_EQ(files, names.size() - 2);  // "//" and "trailing/x/" are directories
  copy_parallel("s3://bucket/keys", "s3://bucket/copies");
  EXPECT_EQ(store.server.keys("bucket").size(), 2 * names.size());
  remove("s3://bucket/keys", true);
  remove("s3://bucket/copies", true);
  EXPECT_TRUE(store.server.keys("bucket").empty());
}

// Each file would wait for it as long as the first ones.
TEST(CopyTest, OfAStoreThatIsAwayEndsSoon) {
  StoreFixture store;
  TemporaryDirectory directory;
  for (int i = 0; i < 60; ++i) {
    store.server.put("bucket", fmt::format("down/{}", i), "abc");
    directory.write(fmt::format("up/{}", i), "abc");
  }
  auto options = store.options();
  options.attempts = 2;
  store.use(options);
  std::atomic<int> requests{0};
  store.proxy.set_plan([&](const std::string& operation, int64_t) -> testing_store::Happening {
    if (operation != "GetObject" && operation != "PutObject") return {};
    ++requests;  // libcurl itself repeats some that are reset
    return {operation == "GetObject" ? testing_store::Fault::kStatus503
                                     : testing_store::Fault::kResetInRequest};
  });
  for (const auto& [from, to] :
       {Way("s3://bucket/down", directory.file("to")), Way(directory.file("up"), "s3://bucket/to")}) {
    requests = 0;
    EXPECT_THAT(message_of<IoError>([&, from = from, to = to] { copy_parallel(from, to, {.threads = 4}); }),
                testing::AllOf(HasSubstr("0 of 60 files"), HasSubstr("not tried, since the store")));
    EXPECT_LT(requests, 40) << from;
  }
  store.proxy.set_plan({});
  EXPECT_EQ(copy_parallel("s3://bucket/down", directory.file("to")).files, 60);
}

// The trouble of some is not that of all.
TEST(CopyTest, OfAStoreThatAnswersForOthersGoesOn) {
  StoreFixture store;
  TemporaryDirectory directory;
  for (int i = 0; i < 60; ++i) store.server.put("bucket", fmt::format("down/{}", i), "abc");
  auto options = store.options();
  options.attempts = 1;
  store.use(options);
  store.proxy.set_plan([&](const std::string& operation, int64_t number) -> testing_store::Happening {
    if (operation == "GetObject" && number % 3 != 2) return {testing_store::Fault::kStatus503};
    return {};
  });
  EXPECT_THAT(
      message_of<IoError>([&] { copy_parallel("s3://bucket/down", directory.file("to"), {.threads = 1}); }),
      testing::AllOf(HasSubstr("20 of 60 files"), testing::Not(HasSubstr("not tried"))));
}

// What a copy begins with may wait for a store as long as what follows.
TEST(CopyTest, IsCancelledWhileItWaitsForAListing) {
  StoreFixture store;
  TemporaryDirectory directory;
  write("s3://bucket/from/a", "abc");
  store.proxy.set_plan([](const std::string& operation, int64_t number) -> testing_store::Happening {
    return {operation == "ListObjectsV2" && number > 0 ? testing_store::Fault::kStandstill
                                                       : testing_store::Fault::kNone};
  });
  std::stop_source stop;
  const auto begin = std::chrono::steady_clock::now();
  const std::jthread user([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    stop.request_stop();
  });
  EXPECT_THAT(message_of<IoError>([&] {
                copy_parallel("s3://bucket/from", directory.file("to"), {.stop = stop.get_token()});
              }),
              HasSubstr("cancelled"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            std::chrono::seconds(15));  // it would wait 20 s, ten times
}

TEST(CopyTest, GoesOnFromItsParts) {
  StoreFixture store;
  TemporaryDirectory directory;
  const std::string content = random_bytes(40 << 20);
  write(directory.file("a"), content);
  auto options = store.options();
  options.attempts = 2;
  store.use(options);
  // The third part of an upload never arrives, then it does.
  store.proxy.set_plan([](const std::string& operation, int64_t number) {
    return testing_store::Happening{operation == "UploadPart" && number >= 3
                                        ? testing_store::Fault::kResetInRequest
                                        : testing_store::Fault::kNone};
  });
  EXPECT_THROW(copy(directory.file("a"), "s3://bucket/a", {.threads = 1}), IoError);
  EXPECT_EQ(store.server.content("bucket", "a"), nullptr);
  EXPECT_EQ(store.server.uploads_under_way(), 1);
  store.proxy.set_plan({});
  const CopyReport up = copy(directory.file("a"), "s3://bucket/a");
  EXPECT_EQ(up.continued_bytes, 24 << 20);
  EXPECT_EQ(up.sent_bytes, 16 << 20);
  EXPECT_EQ(store.server.uploads_under_way(), 0);

  store.proxy.set_plan([](const std::string& operation, int64_t number) {
    return testing_store::Happening{operation == "GetObject" && number >= 2 ? testing_store::Fault::kTruncated
                                                                            : testing_store::Fault::kNone};
  });
  EXPECT_THROW(copy("s3://bucket/a", directory.file("b"), {.threads = 1}), IoError);
  EXPECT_FALSE(exists(directory.file("b")));
  EXPECT_TRUE(exists(directory.file("b.moxing.part")));
  store.proxy.set_plan({});
  EXPECT_EQ(copy("s3://bucket/a", directory.file("b")).continued_bytes, 16 << 20);
  EXPECT_TRUE(read(directory.file("b")) == content);
  EXPECT_FALSE(exists(directory.file("b.moxing.part")));
  EXPECT_FALSE(exists(directory.file("b.moxing.part.journal")));
}

}  // namespace
}  // namespace mox::file
