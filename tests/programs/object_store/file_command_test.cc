// mox file: what it prints, and how it ends.
#include <signal.h>

#include <filesystem>
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
  EXPECT_EQ(refused.status, 2);
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
  EXPECT_EQ(mox({"rm", "s3://bucket/none"}).status, 2);
  EXPECT_EQ(mox({"rm", "-r", "s3://bucket/tree"}).status, 0);
  EXPECT_EQ(store_.server.keys("bucket"), std::vector<std::string>{"c"});
  EXPECT_EQ(mox({"ls", "s3://bucket/none"}).status, 2);
}

// JSON has no other bytes than those of UTF-8.
TEST_F(FileCommand, NamesThatAreNoUtf8StayDifferentInJson) {
  directory_.write("a\xe8", "1");
  directory_.write("a\xe9", "2");
  EXPECT_THAT(mox({"ls", "--json", directory_.path()}).out,
              testing::AllOf(HasSubstr(R"(/a\\xe8")"), HasSubstr(R"(/a\\xe9")")));
}

// What is listed is named as the other commands take it.
TEST_F(FileCommand, DirectoriesOfNoName) {
  for (const char* key : {"dir//x", "dir/x", "dir/keep"}) store_.server.put("bucket", key, key);
  EXPECT_EQ(mox({"ls", "s3://bucket/dir"}).out, "s3://bucket/dir//\nkeep\nx\n");
  EXPECT_EQ(mox({"ls", "s3://bucket/dir/*/"}).out, "s3://bucket/dir//\n");
  EXPECT_EQ(mox({"ls", "s3://bucket/dir/**"}).out,
            "s3://bucket/dir//\ns3://bucket/dir//x\ns3://bucket/dir/keep\ns3://bucket/dir/x\n");
  EXPECT_THAT(mox({"ls", "--json", "s3://bucket/dir"}).out,
              HasSubstr(R"({"url":"s3://bucket/dir//","directory":true)"));
  EXPECT_EQ(mox({"rm", "-r", "s3://bucket/dir//"}).status, 0);
  EXPECT_EQ(store_.server.keys("bucket"), (std::vector<std::string>{"dir/keep", "dir/x"}));
}

TEST_F(FileCommand, ADirectoryBesideAFileOfItsName) {
  for (const char* key : {"data", "data/h", "data/sub/w"}) store_.server.put("bucket", key, key);
  EXPECT_EQ(mox({"ls", "s3://bucket/data"}).out, "h\nsub/\n");
  EXPECT_EQ(mox({"du", "s3://bucket/data"}).out, "16 bytes in 2 files\n");
  EXPECT_EQ(mox({"cp", "s3://bucket/data", directory_.file("one")}).status, 0);
  EXPECT_EQ(read_file(directory_.file("one")), "data");
  EXPECT_THAT(mox({"cp", "-r", "s3://bucket/data", directory_.file("all")}).out, HasSubstr("2 files"));
  EXPECT_EQ(mox({"sync", "s3://bucket/data", directory_.file("all")}).status, 0);
  EXPECT_EQ(read_file(directory_.file("all/sub/w")), "data/sub/w");
  EXPECT_EQ(mox({"cp", directory_.file("all/h"), "s3://bucket/data"}).status, 0);  // replaces the file
  EXPECT_EQ(*store_.server.content("bucket", "data"), "data/h");
  EXPECT_EQ(mox({"mv", "s3://bucket/data", "s3://bucket/new"}).status, 0);
  EXPECT_EQ(store_.server.keys("bucket"), (std::vector<std::string>{"data", "new/h", "new/sub/w"}));
}

TEST_F(FileCommand, ForEachOfSeveralAndSaysWhatFailed) {
  for (const char* name : {"a", "b", "c"}) store_.server.put("bucket", name, name);
  const ProcessResult printed = mox({"cat", "s3://bucket/a", "s3://bucket/none", "s3://bucket/c"});
  EXPECT_EQ(printed.status, 2);
  EXPECT_EQ(printed.out, "ac");
  EXPECT_THAT(printed.err, HasSubstr("no object 's3://bucket/none'"));
  const ProcessResult removed =
      mox({"rm", "s3://bucket/a", "s3://bucket/none", "s3://bucket/x*", "s3://bucket/c"});
  EXPECT_EQ(removed.status, 2);
  EXPECT_THAT(removed.err,
              testing::AllOf(HasSubstr("no object 's3://bucket/none'\n"),
                             HasSubstr("'s3://bucket/x*' (`mox file ls` alone takes patterns)")));
  EXPECT_EQ(store_.server.keys("bucket"), std::vector<std::string>{"b"});
}

// A name that the system or the store refuses is the matter of that name.
TEST_F(FileCommand, GoesOnAfterANameThatIsRefused) {
  directory_.write("local", "x");
  EXPECT_EQ(mox({"rm", directory_.file(std::string(300, 'x')), directory_.file("local")}).status, 1);
  EXPECT_FALSE(fs::exists(directory_.file("local")));
  testing_store::Keys other;
  other.secret = "another";
  store_.server.set_keys(other);
  const ProcessResult refused = mox({"cat", "s3://bucket/a", "s3://bucket/b"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, testing::AllOf(HasSubstr("bucket/a'"), HasSubstr("bucket/b'")));
}

TEST_F(FileCommand, ListsWhatMatchesBesideALinkThatLeadsNowhere) {
  directory_.write("here/a", "x");
  directory_.write("here/z", "x");
  fs::create_symlink("none", directory_.file("here/b"));
  const ProcessResult result = mox({"ls", directory_.file("here/*")});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, directory_.file("here/a") + "\n" + directory_.file("here/z") + "\n");
  EXPECT_THAT(result.err, HasSubstr("here/b'"));
}

// A store that is away is the matter of all: it would be waited for once a name.
TEST_F(FileCommand, AsksAStoreThatIsAwayForOneOfSeveral) {
  ::setenv("S3_ENDPOINT", "http://127.0.0.1:1", 1);
  const ProcessResult result = mox({"cat", directory_.file("none"), "s3://bucket/a", "s3://bucket/b"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, testing::AllOf(HasSubstr("none'"), HasSubstr("'s3://bucket/a'"),
                                         Not(HasSubstr("bucket/b'")), HasSubstr("1 more were not tried")));
}

TEST_F(FileCommand, MovesAFileIntoADirectory) {
  directory_.write("here/x", "");
  store_.server.put("bucket", "a", "content");
  EXPECT_EQ(mox({"mv", "s3://bucket/a", "s3://bucket/new/"}).status, 0);
  EXPECT_EQ(mox({"mv", "s3://bucket/new/a", directory_.file("here")}).status, 0);
  EXPECT_EQ(read_file(directory_.file("here/a")), "content");
  EXPECT_TRUE(store_.server.keys("bucket").empty());
}

TEST_F(FileCommand, SlipsAreNamed) {
  directory_.write("a", "content");
  const std::string here = directory_.file("a"), tree = directory_.file("tree");
  const auto refused = [&](const Words& words, const char* part, int status = 2) {
    const ProcessResult result = mox(words);
    EXPECT_EQ(result.status, status) << part;
    EXPECT_THAT(result.err, HasSubstr(part));
  };
  refused({"cp", here, "s3:bucket/a"}, "no slash where 's3://' has two");
  refused({"cp", here, "s3//bucket/a"}, "no colon where 's3://' has one");
  directory_.write("tree/a", "content");
  for (const Words& words : {Words{"cp", here, "-"}, Words{"mv", here, "-"}, Words{"cp", "-r", tree, "-"},
                             Words{"mv", tree, "-"}, Words{"sync", tree, "-"}})
    refused(words, "`mox file cat` prints one");
  EXPECT_FALSE(fs::exists("-"));
  EXPECT_EQ(mox({"sync", tree, directory_.file("-")}).status, 0);
  EXPECT_TRUE(fs::exists(directory_.file("-/a")));
  EXPECT_TRUE(fs::exists(tree + "/a"));
  refused({"cpp", here, "s3://bucket/a"},
          "there is no command 'mox file cpp': did you mean 'cp'? There are ls, cat, ");
  for (const char* verb : {"ls", "cat", "stat", "du", "rm"})
    refused({verb, "s3://nobucket/x"}, "there is no bucket 'nobucket'");
  refused({"sync", tree, tree}, "is, or lies in");
  refused({"mv", tree, tree}, "is taken");
  refused({"rm", tree}, "is not empty");
  refused({"rm", "-r", tree + "/."}, "name the directory itself");
  refused({"rm", "-r", "s3://bucket"}, "is a whole bucket");
  for (const std::string& directory : {tree, std::string("s3://bucket/")})
    refused({"cat", directory}, "directory");
  EXPECT_TRUE(fs::exists(tree + "/a"));
  refused({"--profile=none", "ls", "s3://bucket"}, "the profile 'none'");
  const std::string address = store_.server.endpoint().substr(std::string("http://").size());
  refused({"--endpoint=https://" + address, "ls", "s3://bucket"}, "this server speaks no TLS", 1);
  const ProcessResult trusts_nobody =
      run_process({"/usr/bin/env", "AWS_CA_BUNDLE=/nonexistent/ca.crt", MOX_BINARY_DIR "/bin/mox", "file",
                   "--endpoint=https://" + address, "ls", "s3://bucket"});
  EXPECT_EQ(trusts_nobody.status, 1);
  EXPECT_THAT(trusts_nobody.err, AllOf(HasSubstr("/nonexistent/ca.crt"), HasSubstr("install ca-certificates"),
                                       HasSubstr("file.ca_file"), HasSubstr("(attempt 1 of 10)")));
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
