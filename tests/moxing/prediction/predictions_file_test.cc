#include "moxing/prediction/predictions_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "moxing/formats/npy.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

OutputBatch batch_of(int64_t first, std::vector<float> p, std::vector<int64_t> label,
                     std::vector<std::string> names) {
  const auto rows = static_cast<int64_t>(label.size());
  OutputBatch batch;
  batch.emplace_back("p", Array::from<float>({rows, static_cast<int64_t>(p.size()) / rows}, p));
  batch.emplace_back("class", Array::from<int64_t>({rows}, label));
  batch.first_sample = first;
  batch.sample_names = std::move(names);
  return batch;
}

class PredictionsFileTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, bool named) const {
    using Names = std::vector<std::string>;
    std::string path = directory_.file(name);
    const auto file = PredictionsFile::open(path);
    file->add(batch_of(0, {0.1F, 0.9F, std::nanf(""), -HUGE_VALF}, {1, 0},
                       named ? Names{"a.jpg", "b,\"\xc3\xa9\".jpg"} : Names{}));
    EXPECT_FALSE(std::filesystem::exists(path)) << "it is not whole";
    file->add(batch_of(2, {1e-30F, 16777216}, {7}, named ? Names{"c"} : Names{}));
    file->finish();
    EXPECT_EQ(file->rows(), 3);
    EXPECT_FALSE(std::filesystem::exists(path + ".part"));
    return path;
  }

  TemporaryDirectory directory_;
};

TEST_F(PredictionsFileTest, Csv) {
  EXPECT_EQ(read_file(write("p.csv", true)),
            "sample,file,p/0,p/1,class\n"
            "0,a.jpg,0.1,0.9,1\n"
            "1,\"b,\"\"\xc3\xa9\"\".jpg\",nan,-inf,0\n"
            "2,c,1e-30,16777216,7\n");
  EXPECT_THAT(read_file(write("q.csv", false)), HasSubstr("sample,p/0,p/1,class\n0,0.1,0.9,1\n"));
}

TEST_F(PredictionsFileTest, JsonLines) {
  EXPECT_EQ(read_file(write("p.jsonl", true)),
            "{\"sample\":0,\"file\":\"a.jpg\",\"p\":[0.1,0.9],\"class\":1}\n"
            "{\"sample\":1,\"file\":\"b,\\\"\xc3\xa9\\\".jpg\",\"p\":[null,null],\"class\":0}\n"
            "{\"sample\":2,\"file\":\"c\",\"p\":[1e-30,16777216],\"class\":7}\n");
}

// A name of a file may be of any bytes; two of them stay two.
TEST_F(PredictionsFileTest, NamesThatAreNoUtf8StayDifferent) {
  const auto said_of = [&](const std::string& name) {
    testing::internal::CaptureStderr();
    const auto file = PredictionsFile::open(directory_.file(name));
    file->add(batch_of(0, {1, 2, 3}, {0, 0, 0}, {"a\xe9.jpg", "a\xe8.jpg", "\xc3\xa9\n"}));
    file->finish();
    return testing::internal::GetCapturedStderr();
  };
  set_log_level(LogLevel::kInfo);  // other tests may have changed it
  const std::string said = said_of("p.jsonl");
  EXPECT_THAT(said, AllOf(HasSubstr("is no UTF-8"), HasSubstr("as 'a\\xe9.jpg'"), HasSubstr("p.jsonl")));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_THAT(read_file(directory_.file("p.jsonl")),
              AllOf(HasSubstr(R"("file":"a\\xe9.jpg")"), HasSubstr(R"("file":"a\\xe8.jpg")"),
                    HasSubstr("\"file\":\"\xc3\xa9\\n\"")));
  EXPECT_THAT(said_of("p.npz"), HasSubstr("as 'a\\xe9.jpg'"));
  const std::string_view letters(
      "x\0\0\0e\0\0\0"
      "8\0\0\0",
      12);
  EXPECT_THAT(read_file(directory_.file("p.npz")), HasSubstr(std::string(letters)));
  EXPECT_EQ(said_of("p.csv"), "");
  EXPECT_THAT(read_file(directory_.file("p.csv")), HasSubstr("0,a\xe9.jpg,1"));
}

TEST_F(PredictionsFileTest, NpzReadsBack) {
  const auto arrays = data::read_npz(write("p.npz", false));
  EXPECT_EQ(arrays.at("p").shape(), (Shape{3, 2}));
  EXPECT_EQ(arrays.at("p").values<float>()[5], 16777216);
  EXPECT_EQ(arrays.at("class").values<int64_t>()[2], 7);
  EXPECT_EQ(arrays.at("sample").values<int64_t>()[1], 1);
}

TEST_F(PredictionsFileTest, NpzWithNamesIsWhatNumpyReads) {
  const std::string python = "/usr/bin/python3 -c \"import numpy as n";
  if (std::system((python + "\" 2>/dev/null").c_str()) != 0) GTEST_SKIP() << "needs NumPy";
  const std::string path = write("p.npz", true);
  EXPECT_EQ(std::system((python + "; z = n.load('" + path +
                         "'); assert [ord(x[3:4] or ' ') for x in z['file']] == [112, 233, 32], z['file']; "
                         "assert z['p'].shape == (3, 2)\"")
                            .c_str()),
            0);
}

TEST_F(PredictionsFileTest, NamesTooLongForOneNpzAreRefusedBeforeItWraps) {
  // Every name takes the room of the longest: 1,024 times 4 MiB is past what the archive's sizes can say.
  const auto file = PredictionsFile::open(directory_.file("p.npz"));
  std::vector<std::string> names(1024, "a.jpg");
  names.front() = std::string(1 << 20, 'a');
  EXPECT_THAT([&] { file->add(batch_of(0, std::vector<float>(1024), std::vector<int64_t>(1024), names)); },
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("too large")));
}

TEST_F(PredictionsFileTest, AFileThatIsNotFinishedLeavesNothing) {
  for (const char* name : {"p.csv", "p.jsonl", "p.npz"}) {
    PredictionsFile::open(directory_.file(name))->add(batch_of(0, {1}, {1}, {}));
    EXPECT_TRUE(std::filesystem::is_empty(directory_.path())) << name;
  }
}

// A run's metrics have an ending of predictions, and a run has them once.
TEST_F(PredictionsFileTest, DoesNotTakeThePlaceOfMetrics) {
  const std::string path = directory_.file("metrics.jsonl");
  write_file_atomically(path, "{\"step\":1}\n");
  EXPECT_THAT(message_of<InvalidArgument>([&] { PredictionsFile::open(path); }),
              AllOf(HasSubstr(path), HasSubstr("a run keeps its metrics"), HasSubstr("name another one")));
  EXPECT_EQ(read_file(path), "{\"step\":1}\n");
}

TEST_F(PredictionsFileTest, SaysWhatItCannotWrite) {
  const auto open = [&](const char* name) { return PredictionsFile::open(directory_.file(name)); };
  EXPECT_THAT(message_of<InvalidArgument>([&] { open("p.parquet"); }), HasSubstr(".csv, .jsonl or .npz"));
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { open("nowhere/p.csv"); }),
      AllOf(HasSubstr("predictions is '"), HasSubstr("nowhere/p.csv'"), HasSubstr("a directory that")));
  std::filesystem::create_directory(directory_.file("folder.csv"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { open("folder.csv"); }), HasSubstr("which is a directory"));
  const auto file = open("p.csv");
  file->add(batch_of(0, {1}, {1}, {}));
  EXPECT_THROW(file->add(batch_of(1, {1, 2}, {1}, {})), InvalidArgument);
  OutputBatch reserved;
  reserved.emplace_back("sample", Array(DType::kFloat32, {1}));
  EXPECT_THAT(message_of<InvalidArgument>([&] { open("q.csv")->add(reserved); }),
              HasSubstr("output_info 'sample'"));
}

TEST_F(PredictionsFileTest, ColumnsOfOneNameAreRefused) {
  OutputBatch batch = batch_of(0, {1, 2}, {1}, {});
  batch.emplace_back("p/1", Array(DType::kFloat32, {1}));
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { PredictionsFile::open(directory_.file("p.csv"))->add(batch); }),
      HasSubstr("two columns called 'p/1'"));
  EXPECT_NO_THROW(PredictionsFile::open(directory_.file("p.jsonl"))->add(batch));
}

TEST(OutputBatchTest, GoesToBytesAndBack) {
  const OutputBatch batch = batch_of(5, {1, 2, 3, 4}, {7, 8}, {"a", ""});
  const OutputBatch copy = OutputBatch::from_bytes(batch.to_bytes());
  ASSERT_EQ(copy.size(), 2U);
  EXPECT_EQ(copy.array("p").shape(), (Shape{2, 2}));
  EXPECT_EQ(copy.array("class").values<int64_t>()[1], 8);
  EXPECT_EQ(copy.sample_names, batch.sample_names);
  EXPECT_THAT(message_of<NotFound>([&] { copy.array("q"); }), HasSubstr("it has: p, class"));
  const std::string bytes = batch.to_bytes();
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(OutputBatch::from_bytes(std::string_view(bytes).substr(0, length)), DataError) << length;
}

// A table that lies in a store is no file of this machine, and would be replaced as well.
TEST(RequireOtherThanInput, OfAStoreToo) {
  EXPECT_THROW(require_other_than_input("s3://bucket/t.csv", "s3://bucket/t.csv"), ConfigError);
  EXPECT_NO_THROW(require_other_than_input("s3://bucket/answers.csv", "s3://bucket/t.csv"));
}

}  // namespace
}  // namespace mox
