// Listings of stores that have the first version of the call alone, and of Huawei's OBS.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/s3/client.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class FirstVersion : public testing::Test {
 protected:
  FirstVersion() {
    store_.server.set_lists_by_first_version(true);
    for (const std::string& key : kKeys)
      store_.server.put("bucket", "d/" + key, key.ends_with('/') ? "" : key);
  }
  // "%41" and "a+b" are other keys where they are decoded.
  const std::vector<std::string> kKeys = {"%41", "a b", "a+b", "b/c", "b/d", "e&f", "g/", "h", "i/j/k"};

  StoreFixture store_;
  TemporaryDirectory directory_;
};

TEST_F(FirstVersion, ListsAllPages) {
  for (const char* scheme : {"s3", "obs"})
    for (const int page : {1, 2, 3, 1000}) {
      store_.server.set_page(page);
      const std::string top = fmt::format("{}://bucket/d", scheme);
      EXPECT_THAT(list_directory(top), ElementsAre("%41", "a b", "a+b", "b", "e&f", "g", "h", "i")) << page;
      EXPECT_THAT(list_directory(top, {.recursive = true, .skip_dir = true}),
                  ElementsAre("%41", "a b", "a+b", "b/c", "b/d", "e&f", "h", "i/j/k"))
          << page;
      EXPECT_EQ(copy_parallel(top, directory_.file("to")).files, 8);
    }
  EXPECT_EQ(read(directory_.file("to/%41")), "%41");
  rename("s3://bucket/d", "obs://bucket/moved");
  remove("s3://bucket/moved", true);
  EXPECT_TRUE(store_.server.keys("bucket").empty());
}

TEST_F(FirstVersion, IsAskedForOfObsAtOnce) {
  list_directory("obs://bucket/d");
  exists("obs://bucket/d/none");
  EXPECT_EQ(store_.server.requests_of("ListObjectsV2"), 0);
  list_directory("s3://bucket/d");
  EXPECT_GT(store_.server.requests_of("ListObjectsV2"), 0);
}

TEST_F(FirstVersion, GoesOnWithPartsOfAnUploadToAnOddName) {
  const std::string content = random_bytes(17 << 20);
  write(directory_.file("a"), content);
  for (const char* scheme : {"s3", "obs"}) {
    auto options = store_.options();
    options.attempts = 1;
    store_.use(options);
    const std::string to = fmt::format("{}://bucket/up a+b%41", scheme);
    // libcurl itself repeats a request that was reset on a connection that had been used.
    store_.proxy.set_plan([](const std::string& operation, int64_t number) {
      return testing_store::Happening{operation == "UploadPart" && number >= 2
                                          ? testing_store::Fault::kStatus503
                                          : testing_store::Fault::kNone};
    });
    EXPECT_THROW(copy(directory_.file("a"), to, {.threads = 1}), IoError);
    store_.proxy.set_plan({});
    EXPECT_EQ(copy(directory_.file("a"), to).continued_bytes, 16 << 20);
    remove(to);
  }
}

// The names say whose store that is. What asks for a proxy that is not there has sent nothing to anybody.
TEST(ObsTest, WithoutAnEndpointNothingIsAsked) {
  const StoreFixture store;
  auto options = store.options();
  options.endpoint.clear();
  options.attempts = 1;
  store.use(options);
  ::setenv("https_proxy", "http://127.0.0.1:9", 1);
  TemporaryDirectory directory;
  write(directory.file("a"), "abc");
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [] { read("obs://bucket/a"); }, [] { write("obs://bucket/a", ""); },
           [] { list_directory("obs://bucket/d"); }, [] { exists("obs://bucket/a"); },
           [] { remove("obs://bucket/d", true); },
           [&] { copy_parallel(directory.path(), "obs://bucket/d"); }})
    EXPECT_THAT(message_of<ConfigError>(call),
                AllOf(HasSubstr("'obs://bucket/"), HasSubstr("S3_ENDPOINT"), HasSubstr("--file.endpoint")));
  // Amazon's names need none.
  EXPECT_THAT(message_of<IoError>([] { read("s3://bucket/a"); }), HasSubstr("127.0.0.1"));
  ::unsetenv("https_proxy");
}

}  // namespace
}  // namespace mox::file
