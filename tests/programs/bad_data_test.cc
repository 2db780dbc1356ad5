// Data files that cannot be used: one error, and the run that was there goes on once the data is good again.
#include <zlib.h>

#include <filesystem>
#include <functional>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/file.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

std::string gzipped(const std::string& content) {
  std::string out(compressBound(content.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct BadData {
  const char* name;
  std::function<void(const std::string& data)> spoil;
  std::vector<std::string> says;
  int status = 1;  // 2 for a value that is refused
};

void PrintTo(const BadData& bad, std::ostream* out) { *out << bad.name; }

void resize(const std::string& path, size_t bytes) { std::filesystem::resize_file(path, bytes); }
void zip(const std::string& path, size_t keep) {
  const std::string zipped = gzipped(read_file(path));
  write_file_atomically(path + ".gz", zipped.substr(0, keep ? keep : zipped.size()));
  std::filesystem::remove(path);
}
const std::string kImages = "/train-images-idx3-ubyte", kLabels = "/train-labels-idx1-ubyte";

const BadData kBadData[] = {
    {"MissingFile",
     [](const std::string& d) { std::filesystem::remove(d + kImages); },
     {"no train-images file in", "tried train-images-idx3-ubyte", "dataset-fashion-mnist"},
     2},
    {"MissingLabels",
     [](const std::string& d) { std::filesystem::remove(d + kLabels); },
     {"no train-labels file in"},
     2},
    {"MissingTestData",
     [](const std::string& d) { std::filesystem::remove(d + "/t10k-images-idx3-ubyte"); },
     {"no t10k-images file in"},
     2},
    {"MissingDirectory",
     [](const std::string& d) { std::filesystem::remove_all(d); },
     {"data set's directory", "is no directory", "data_url"},
     2},
    {"TruncatedGzip",
     [](const std::string& d) { zip(d + kImages, 100000); },
     {"train-images-idx3-ubyte.gz", "offset", "cut off"}},
    {"DamagedGzip",
     [](const std::string& d) {
       zip(d + kImages, 0);
       flip_byte(d + kImages + ".gz", 70000);
     },
     {"train-images-idx3-ubyte.gz", "damaged"}},
    {"TruncatedFile",
     [](const std::string& d) { resize(d + kImages, 200000); },
     {"train-images-idx3-ubyte'", "[300, 28, 28] of uint8 need 235200 bytes"}},
    {"CutInsideTheCompressedImages",
     [](const std::string& d) {
       const std::string file = read_file(d + kImages);
       write_file_atomically(d + kImages + ".gz", gzipped(file.substr(0, 200000)));
       std::filesystem::remove(d + kImages);
     },
     {"train-images-idx3-ubyte.gz'", "the decompressed file is cut off", "235200"}},
    {"TruncatedHeader",
     [](const std::string& d) { resize(d + kImages, 6); },
     {"ends inside the 3 dimensions"}},
    {"EmptyFile", [](const std::string& d) { resize(d + kLabels, 0); }, {"ends inside the magic number"}},
    {"WrongMagicNumber", [](const std::string& d) { flip_byte(d + kImages, 0); }, {"wrong magic number"}},
    {"LabelOutOfRange",
     [](const std::string& d) { flip_byte(d + kLabels, 8 + 123); },
     {"train-labels-idx1-ubyte', offset 131", "of sample 123 is out of range: expected 0 to 9"}},
    {"FewerLabelsThanImages",
     [](const std::string& d) {
       write_file_atomically(d + kLabels, idx_file(8, {10}, std::string(10, '\1')));
     },
     {"holds 300 images", "holds 10 labels"}},
    {"DataIsADirectory",
     [](const std::string& d) {
       std::filesystem::remove(d + kImages);
       std::filesystem::create_directory(d + kImages);
     },
     {"train-images-idx3-ubyte", "directory"}},
};

class BadDataTest : public TrainingTest, public testing::WithParamInterface<BadData> {};

TEST_P(BadDataTest, IsOneErrorAndNothingIsLost) {
  expect_success(train("mnist_softmax", log_dir_, 20));
  const std::string before = latest_content(log_dir_);
  GetParam().spoil(data_);
  expect_error(train("mnist_softmax", log_dir_, 40), GetParam().says, GetParam().status);
  expect_error(train("mnist_softmax", fresh("new"), 40), GetParam().says, GetParam().status);
  EXPECT_TRUE(latest_content(log_dir_) == before);

  std::filesystem::remove_all(data_);
  write_small_data(data_);
  const std::string whole = fresh("whole");
  expect_success(train("mnist_softmax", log_dir_, 40));
  expect_success(train("mnist_softmax", whole, 40));
  EXPECT_TRUE(latest_content(log_dir_) == latest_content(whole));
}

// Good files, but of other data than the run began with.
TEST_F(TrainingTest, OtherDataThanBeforeIsRefusedWithTheWayToGoOn) {
  expect_success(train("mnist_softmax", log_dir_, 20));
  const std::string before = latest_content(log_dir_);
  expect_error(
      train("mnist_softmax", log_dir_, 40, {"--batch_size=8"}),
      {"cannot be continued", "'batch(7)'", "'batch(8)'", "--checkpoint_path=" + log_dir_ + "/checkpoint-20"},
      2);
  flip_byte(data_ + kImages, 5000);
  expect_error(train("mnist_softmax", log_dir_, 40), {"cannot be continued", "crc", "--checkpoint_path="}, 2);
  EXPECT_TRUE(latest_content(log_dir_) == before);
  expect_success(
      train("mnist_softmax", fresh("warm"), 40, {"--checkpoint_path=" + log_dir_ + "/checkpoint-20"}));
}

TEST_F(TrainingTest, ImagesOfAnotherSizeAreRefusedByTheModel) {
  write_file_atomically(data_ + kImages, idx_file(8, {300, 2, 2}, std::string(1200, '\1')));
  expect_error(train("mnist_softmax", log_dir_, 40), {"matmul", "mnist_softmax", "[784, 10]"}, 2);
  expect_error(train("fashion_lenet", log_dir_, 40), {"image_shape [1, 28, 28] has 784 elements", "have 4"},
               2);
}

INSTANTIATE_TEST_SUITE_P(All, BadDataTest, testing::ValuesIn(kBadData),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mox
