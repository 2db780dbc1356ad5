// Image folders and image records, on files made here.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "moxing/formats/tf_example.h"
#include "moxing/image_sets/image_folder.h"
#include "moxing/image_sets/image_records.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/data/pipeline.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const ImageOptions kOptions{.augmentation = {.height = 8, .width = 8}};

std::string jpeg(uint64_t seed) { return image::encode_jpeg(image::picture(40, 30, seed)); }

void make_folder(const TemporaryDirectory& directory) {
  directory.write("set/rose/b.jpg", jpeg(1));
  directory.write("set/rose/a.JPEG", jpeg(2));
  directory.write("set/daisy/z.png", image::encode_png(image::picture(20, 20, 3)));
  directory.write("set/daisy/.hidden.jpg", "no image");
}

std::vector<int32_t> labels_of(const Dataset& dataset) {
  std::vector<int32_t> labels;
  Pipeline pipeline(dataset.batch(4), {});
  for (Batch batch; pipeline.next(&batch);)
    for (int32_t label : batch.components[1].values<int32_t>()) labels.push_back(label);
  return labels;
}

void run(const Dataset& dataset) {
  Pipeline pipeline(dataset.batch(4), {});
  for (Batch batch; pipeline.next(&batch);) continue;
}

TEST(ImageFolder, SortsClassesAndFiles) {
  TemporaryDirectory directory;
  make_folder(directory);
  const ImageClassificationRaw folder(directory.file("set"));
  EXPECT_THAT(folder.label_names(), ElementsAre("daisy", "rose"));
  std::vector<std::string> paths;
  for (const ImageFile& file : folder.files()) paths.push_back(file.path);
  EXPECT_THAT(paths, ElementsAre("daisy/z.png", "rose/a.JPEG", "rose/b.jpg"));
  EXPECT_THAT(labels_of(folder.dataset(kOptions)), ElementsAre(0, 1, 1));
}

TEST(ImageFolder, FollowsLabelsTxt) {
  TemporaryDirectory directory;
  make_folder(directory);
  directory.write("set/labels.txt", "1: daisy\r\n\n0: rose\n");
  const ImageClassificationRaw folder(directory.file("set"));
  EXPECT_THAT(folder.label_names(), ElementsAre("rose", "daisy"));
  EXPECT_THAT(labels_of(folder.dataset(kOptions)), ElementsAre(0, 0, 1));
}

TEST(ImageFolder, RefusesLabelsThatDisagreeWithTheDirectories) {
  TemporaryDirectory directory;
  make_folder(directory);
  const auto message = [&](const std::string& labels) {
    directory.write("set/labels.txt", labels);
    return message_of<DataError>([&] { ImageClassificationRaw folder(directory.file("set")); });
  };
  EXPECT_THAT(message("0: daisy\n1: tulip\n"),
              AllOf(HasSubstr("without a directory: tulip"), HasSubstr("without a label: rose")));
  EXPECT_THAT(message("0: daisy\n2: rose\n"), HasSubstr("label 1 is missing"));
  EXPECT_THAT(message("0: daisy\n0: rose\n"), AllOf(HasSubstr("line 2"), HasSubstr("twice")));
  EXPECT_THAT(message("0: daisy\n1: daisy\n"), HasSubstr("two labels"));
  EXPECT_THAT(message("daisy\n"), HasSubstr("'number: name' is expected"));
  EXPECT_THAT(message(""), HasSubstr("no labels"));
}

TEST(ImageFolder, RefusesEmptyClassesAndMissingDirectories) {
  TemporaryDirectory directory;
  make_folder(directory);
  directory.write("set/tulip/readme.txt", "nothing here");
  EXPECT_THAT(message_of<DataError>([&] { ImageClassificationRaw folder(directory.file("set")); }),
              HasSubstr("the class 'tulip' is empty"));
  EXPECT_THROW(ImageClassificationRaw(directory.file("none")), NotFound);
  EXPECT_THROW(ImageClassificationRaw(directory.file("set/rose")), DataError);
  EXPECT_THROW(ImageClassificationRaw(directory.file("set/rose/b.jpg")), IoError);
}

TEST(ImageFolder, NamesTheFileThatIsBad) {
  TemporaryDirectory directory;
  make_folder(directory);
  const ImageClassificationRaw folder(directory.file("set"));
  const std::string good = jpeg(1);
  for (const std::string& bad :
       {std::string(), std::string("text named .jpg"), good.substr(0, good.size() / 2)}) {
    directory.write("set/rose/b.jpg", bad);
    EXPECT_THAT(message_of<DataError>([&] { run(folder.dataset(kOptions)); }), HasSubstr("set/rose/b.jpg"));
  }
  std::filesystem::remove(directory.file("set/rose/b.jpg"));
  EXPECT_THAT(message_of<NotFound>([&] { run(folder.dataset(kOptions)); }), HasSubstr("set/rose/b.jpg"));
}

TEST(ImageFolder, SkipsBadSamplesWhenAskedTo) {
  TemporaryDirectory directory;
  make_folder(directory);
  directory.write("set/daisy/z.png", "");
  ImageOptions options = kOptions;
  options.on_bad_sample = OnBadSample::kSkip;
  options.max_bad_share = 1;
  options.bad_samples = std::make_shared<BadSamples>();
  const ImageClassificationRaw folder(directory.file("set"));
  EXPECT_THAT(labels_of(folder.dataset(options).repeat(2)), ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_EQ(options.bad_samples->count(), 1);
  EXPECT_THAT(options.bad_samples->reasons(), ElementsAre(HasSubstr("daisy/z.png")));

  options.bad_samples = nullptr;
  options.max_bad_samples = 0;
  EXPECT_THAT(message_of<DataError>([&] { run(folder.dataset(options)); }),
              AllOf(HasSubstr("limit of 0"), HasSubstr("daisy/z.png")));

  directory.write("set/rose/a.JPEG", "");
  directory.write("set/rose/b.jpg", "");
  options.max_bad_samples = 100;
  EXPECT_THAT(message_of<DataError>([&] { run(folder.dataset(options)); }), HasSubstr("no sample"));
}

TEST(ImageFolder, GivesTheSameBitsOnAnyNumberOfThreads) {
  TemporaryDirectory directory;
  for (int i = 0; i < 40; ++i)
    directory.write("set/a/" + std::to_string(i) + ".jpg", jpeg(static_cast<uint64_t>(i)));
  ImageOptions options{
      .augmentation = {.height = 16, .width = 16, .crop = image::Crop::kRandomResized, .flip = true}};
  const Dataset dataset =
      ImageClassificationRaw(directory.file("set")).dataset(options).shuffle(40).repeat(2).batch(7);
  const auto bytes_with = [&](int threads) {
    std::string bytes;
    Pipeline pipeline(dataset, {.seed = 5, .threads = threads});
    for (Batch batch; pipeline.next(&batch);)
      for (const Array& component : batch.components)
        bytes.append(reinterpret_cast<const char*>(component.data()), component.bytes());
    return bytes;
  };
  const std::string expected = bytes_with(0);
  EXPECT_FALSE(expected.empty());
  for (int threads : {1, 2, 8}) EXPECT_EQ(bytes_with(threads), expected) << threads;
}

TEST(MultilabelFolder, ReadsSeveralLabels) {
  TemporaryDirectory directory;
  directory.write("set/images/1.jpg", jpeg(1));
  directory.write("set/images/2.jpg", jpeg(2));
  directory.write("set/labels/1.jpg.txt", "sky\ntree\n");
  directory.write("set/labels/2.jpg.txt", "\n");
  const auto labels = [&] {
    const MultilabelClassificationRaw folder(directory.file("set"));
    Pipeline pipeline(folder.dataset(kOptions).batch(2), {});
    Batch batch;
    EXPECT_TRUE(pipeline.next(&batch));
    const auto values = std::as_const(batch.components[1]).values<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  EXPECT_THAT(labels(), ElementsAre(1, 1, 0, 0));
  // Numbered as their names are sorted, in whatever order they come.
  directory.write("set/labels/1.jpg.txt", "tree\nsky\n");
  directory.write("set/labels/2.jpg.txt", "cow\ntree\n");
  EXPECT_THAT(labels(), ElementsAre(0, 1, 1, 1, 0, 1));
  directory.write("set/labels/2.jpg.txt", "\n");
  directory.write("set/labels.txt", "0: sea\n1: sky\n2: tree\n");
  EXPECT_THAT(labels(), ElementsAre(0, 1, 1, 0, 0, 0));

  const auto message = [&] {
    return message_of<DataError>([&] { MultilabelClassificationRaw folder(directory.file("set")); });
  };
  directory.write("set/labels/2.jpg.txt", "sky\ncow\n");
  EXPECT_THAT(message(), AllOf(HasSubstr("2.jpg.txt', line 2"), HasSubstr("'cow'")));
  directory.write("set/labels/3.jpg.txt", "sky\n");
  std::filesystem::remove(directory.file("set/labels/2.jpg.txt"));
  EXPECT_THAT(message(), AllOf(HasSubstr("missing: 2.jpg.txt"), HasSubstr("without an image: 3.jpg.txt")));
}

TEST(ImageRecords, HoldWhatTheFolderHeld) {
  TemporaryDirectory directory;
  make_folder(directory);
  const ImageClassificationRaw folder(directory.file("set"));
  int64_t last = 0;
  const auto paths =
      convert_image_folder(folder, directory.file("out/train"),
                           {.shards = 2, .seed = 0, .progress = [&](int64_t done, int64_t total) {
                              EXPECT_LE(last = done, total);
                            }});
  EXPECT_EQ(last, 3);
  EXPECT_THAT(paths, ElementsAre(directory.file("out/train-00000-of-00002"),
                                 directory.file("out/train-00001-of-00002")));
  EXPECT_EQ(read_file(directory.file("out/labels.txt")), "0: daisy\n1: rose\n");

  auto labels = labels_of(image_classification_tfrecord(directory.file("out/train-*"), {.image = kOptions}));
  std::sort(labels.begin(), labels.end());
  EXPECT_THAT(labels, ElementsAre(0, 1, 1));

  RecordBuffer buffer;
  const auto files = TfRecordFiles::open(paths);
  std::vector<std::string> encoded;
  for (int64_t i = 0; i < 3; ++i) {
    const Example example = parse_example(files->read(i, &buffer), "here");
    encoded.push_back(std::get<std::vector<std::string>>(example.at("image/encoded")).at(0));
    EXPECT_EQ(example.size(), 7u);
  }
  EXPECT_THAT(encoded,
              testing::UnorderedElementsAre(jpeg(1), jpeg(2), image::encode_png(image::picture(20, 20, 3))));
}

TEST(ImageRecords, RefuseBadRecords) {
  TemporaryDirectory directory;
  const auto message = [&](const Example& example, int64_t num_classes = 0) {
    TfRecordWriter writer(directory.file("r"));
    const std::string bytes = serialize_example(example);
    writer.write(as_bytes(std::string_view(bytes)));
    writer.close();
    return message_of<Error>([&] {
      ImageOptions options = kOptions;
      // A label out of range is never skipped: a whole class would be.
      if (num_classes == 0 && example.size() == 2) options.on_bad_sample = OnBadSample::kSkip;
      run(image_classification_tfrecord(directory.file("r"),
                                        {.image = options, .label_offset = 1, .num_classes = num_classes}));
    });
  };
  using Strings = std::vector<std::string>;
  using Integers = std::vector<int64_t>;
  EXPECT_THAT(message({{"image/class/label", Integers{1}}}), HasSubstr("'image/encoded' must be there"));
  EXPECT_THAT(message({{"image/encoded", Strings{"x"}}}), HasSubstr("'image/class/label' must be there"));
  EXPECT_THAT(message({{"image/encoded", Strings{"x"}}, {"image/class/label", Integers{0}}}),
              AllOf(HasSubstr("the label 0 is out of range"), HasSubstr("data.label_offset")));
  EXPECT_THAT(message({{"image/encoded", Strings{"x"}}, {"image/class/label", Integers{6}}}, 5),
              HasSubstr("expected 1 to 5"));
  EXPECT_THAT(message({{"image/encoded", Strings{"x"}}, {"image/class/label", Integers{5}}}, 5),
              AllOf(HasSubstr("offset 0"), HasSubstr("no JPEG or PNG")));
}

TEST(ImageRecords, ConversionRefusesBadImages) {
  TemporaryDirectory directory;
  make_folder(directory);
  directory.write("set/rose/b.jpg", jpeg(1).substr(0, 500));
  const ImageClassificationRaw folder(directory.file("set"));
  EXPECT_THAT(message_of<DataError>([&] { convert_image_folder(folder, directory.file("out/x"), {}); }),
              HasSubstr("rose/b.jpg"));
  EXPECT_TRUE(std::filesystem::is_empty(directory.file("out")));
  EXPECT_THROW(convert_image_folder(folder, directory.file("out/x"), {.shards = 0}), InvalidArgument);
}

}  // namespace
}  // namespace mox::data
