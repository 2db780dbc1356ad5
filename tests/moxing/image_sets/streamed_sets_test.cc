// Data sets that are read where they lie in an object store: the bits of the local ones, in the same order,
// whatever happens on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "moxing/file/copy.h"
#include "moxing/file/streams/streamed_file.h"
#include "moxing/formats/csv.h"
#include "moxing/image_sets/image_files.h"
#include "moxing/image_sets/image_folder.h"
#include "moxing/image_sets/image_records.h"
#include "runtime/data/pipeline.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/moxing/image/images.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

using testing_store::Fault;

class StreamedSets : public testing::Test {
 protected:
  StreamedSets() {
    for (int i = 0; i < 40; ++i)
      directory_.write("set/train/" + std::string(i % 3 ? "rose/" : "daisy/") + std::to_string(i) + ".jpg",
                       image::encode_jpeg(image::picture(160, 120, static_cast<uint64_t>(i))));
    convert_image_folder(ImageClassificationRaw(directory_.file("set/train")),
                         directory_.file("set/records/train"), {.shards = 3});
    std::string table;
    for (int i = 0; i < 1000; ++i) table += std::to_string(i) + "," + std::to_string(i * 0.25) + "\n";
    directory_.write("set/table.csv", table);
    file::copy_parallel(directory_.file("set"), "s3://bucket/set");
    store_.proxy.set_plan([](const std::string&, int64_t number) -> testing_store::Happening {
      if (number % 4 == 1) return {Fault::kResetInAnswer, 0.8};
      if (number % 9 == 3) return {Fault::kStatus503};
      return {};
    });
  }

  // All of two passes.
  static std::string bits(const Dataset& dataset, size_t memory = size_t{64} << 20) {
    Pipeline pipeline(dataset.shuffle(dataset.cardinality()).batch(7).repeat(2),
                      {.seed = 5, .memory_budget = std::make_shared<MemoryBudget>(memory)});
    std::string all;
    for (Batch batch; pipeline.next(&batch);)
      for (const Array& component : batch.components)
        all.append(reinterpret_cast<const char*>(component.data()), component.bytes());
    return all;
  }

  TemporaryDirectory directory_;
  file::StoreFixture store_;
  const ImageOptions options_{
      .augmentation = {.height = 32, .width = 32, .crop = image::Crop::kRandomResized}};
};

TEST_F(StreamedSets, ImageFolders) {
  const ImageClassificationRaw local(directory_.file("set/train")), remote("s3://bucket/set/train");
  EXPECT_EQ(local.label_names(), remote.label_names());
  EXPECT_TRUE(bits(local.dataset(options_)) == bits(remote.dataset(options_)));
  EXPECT_GT(store_.proxy.faults_made(), 5);
  EXPECT_EQ(list_image_files("s3://bucket/set/train").size(), 40u);
}

// "images//b.png" lies in a directory of no name, and is another one than "images/b.png".
TEST(StreamedSetsTest, ImagesInADirectoryOfNoName) {
  file::StoreFixture store;
  for (const char* key : {"images//a.png", "images/b.png", "images/c///d.png"})
    store.server.put("bucket", key, key);
  for (const char* place : {"s3://bucket/images", "s3://bucket/images/"})
    EXPECT_THAT(list_image_files(place),
                testing::ElementsAre("s3://bucket/images/b.png", "s3://bucket/images//a.png",
                                     "s3://bucket/images/c///d.png"));
}

// One photograph is replaced between two passes, or a pass and the listing: no pass has a mix of both.
TEST_F(StreamedSets, AnImageThatIsReplacedIsAnErrorThatNothingPassesOver) {
  file::set_stream_memory(1);
  ImageOptions skipping = options_;
  skipping.on_bad_sample = OnBadSample::kSkip;
  for (const ImageOptions& options : {options_, skipping}) {
    file::copy_parallel(directory_.file("set/train"), "s3://bucket/set/train", {.skip_same = false});
    const ImageClassificationRaw remote("s3://bucket/set/train");
    const Dataset dataset = remote.dataset(options);
    bits(dataset);
    file::write("s3://bucket/set/train/rose/1.jpg",
                image::encode_jpeg(image::picture(160, 120, uint64_t{1000})));
    EXPECT_THAT(message_of<IoError>([&] { bits(dataset); }),
                testing::AllOf(testing::HasSubstr("'s3://bucket/set/train/rose/1.jpg' has changed"),
                               testing::HasSubstr("ETag")));
    EXPECT_THROW(bits(remote.dataset(options)), IoError);
    bits(ImageClassificationRaw("s3://bucket/set/train").dataset(options));
  }
  const auto paths = list_image_files("s3://bucket/set/train");
  const Dataset files = image_files(paths, options_);
  bits(files);
  file::write(paths[3], image::encode_jpeg(image::picture(160, 120, uint64_t{1001})));
  EXPECT_THROW(bits(files), IoError);
  file::set_stream_memory(int64_t{256} << 20);
}

TEST_F(StreamedSets, ARecordFileThatIsReplacedIsAnErrorThatNothingPassesOver) {
  file::set_stream_memory(1);
  ImageRecordOptions options{.image = options_, .records = {.index_directory = directory_.file("index")}};
  options.image.on_bad_sample = OnBadSample::kSkip;
  const Dataset dataset = image_classification_tfrecord("s3://bucket/set/records/train-*", options);
  bits(dataset);
  file::copy(directory_.file("set/records/train-00001-of-00003"),
             "s3://bucket/set/records/train-00000-of-00003");
  EXPECT_THAT(message_of<IoError>([&] { bits(dataset); }), testing::HasSubstr("has changed"));
  file::set_stream_memory(int64_t{256} << 20);
}

TEST_F(StreamedSets, ImageFoldersWithoutRoomInMemory) {
  file::set_stream_memory(1);
  const ImageClassificationRaw local(directory_.file("set/train")), remote("s3://bucket/set/train");
  EXPECT_TRUE(bits(local.dataset(options_)) == bits(remote.dataset(options_)));
  file::set_stream_memory(int64_t{256} << 20);
}

TEST_F(StreamedSets, TfRecords) {
  const ImageRecordOptions options{.image = options_,
                                   .records = {.index_directory = directory_.file("index")}};
  const std::string local =
      bits(image_classification_tfrecord(directory_.file("set/records/train-*"), options));
  EXPECT_TRUE(local == bits(image_classification_tfrecord("s3://bucket/set/records/train-*", options)));
  EXPECT_GT(store_.proxy.faults_made(), 5);
  EXPECT_EQ(match_files("s3://bucket/set/records", "train-*"),
            match_files("s3://bucket/set/records/train-*"));
  // The index of the second start is that of the first.
  const int64_t before = store_.server.requests_of("GetObject");
  const auto files = TfRecordFiles::open(match_files("s3://bucket/set/records/train-*"), options.records);
  EXPECT_EQ(files->size(), 40);
  EXPECT_EQ(store_.server.requests_of("GetObject"), before);
}

TEST_F(StreamedSets, TfRecordsThatAreReplacedHaveANewIndex) {
  const TfRecordOptions options{.index_directory = directory_.file("index")};
  const std::string key = "s3://bucket/set/records/train-00000-of-00003";
  const int64_t before = TfRecordFiles::open({key}, options)->size();
  file::copy(directory_.file("set/records/train-00001-of-00003"), key);
  RecordBuffer buffer;
  const auto files = TfRecordFiles::open({key}, options);
  const auto local = TfRecordFiles::open({directory_.file("set/records/train-00001-of-00003")}, options);
  EXPECT_NE(before, 0);
  ASSERT_EQ(files->size(), local->size());
  RecordBuffer other;
  for (int64_t i = 0; i < files->size(); ++i) {
    const auto a = files->read(i, &buffer), b = local->read(i, &other);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
}

TEST_F(StreamedSets, CsvFiles) {
  EXPECT_TRUE(bits(csv_regression(directory_.file("set/table.csv"), {}, 1)) ==
              bits(csv_regression("s3://bucket/set/table.csv", {}, 1)));
}

}  // namespace
}  // namespace mox::data
