// The pre-set jobs on small data, as processes: what somebody who writes no C++ sees.
#include "tests/programs/image_classifier_test.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "moxing/checkpoint/checkpoint.h"
#include "ops/fusion/default_rules.h"
#include "runtime/base/file.h"

namespace mox {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;
using ImageClassifier = ImageClassifierTest;

TEST_F(ImageClassifier, TrainsFromFlagsAloneAndWritesItsLabels) {
  write_images();
  const ProcessResult result = run_process(job({"--eval_every_n_steps=9"}));
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("test accuracy: 1"));
  EXPECT_EQ(read_file(log_dir_ + "/labels.txt"), "0: dark\n1: light\n");
}

TEST_F(ImageClassifier, PredictsAFolderAFileAndAListWithoutLabels) {
  write_images();
  expect_success(run_process(job({})));
  const auto answers = [&](const Words& flags) {
    const ProcessResult result =
        run_process(Words{"image_classifier", "--run_mode=predict", "--train_url=" + log_dir_,
                          "--model.name=cifarnet", "--model.image_size=32", "--log_level=warning"} +
                    flags);
    expect_success(result);
    return result.out;
  };
  const std::string dark = folder_ + "/validation/dark/1.jpg", light = folder_ + "/validation/light/2.jpg";
  EXPECT_THAT(answers({"--predict.images=" + dark}),
              testing::AllOf(testing::StartsWith(dark + ": dark "), HasSubstr(", light ")));
  write("a folder/deeper/one.jpg", read_file(light));
  write("a folder/two.jpg", read_file(dark));
  write("a folder/notes.md", "no image");
  EXPECT_THAT(answers({"--predict.images=" + folder_ + "/a folder", "--predict.top=1"}),
              testing::MatchesRegex(
                  ".*a folder/two.jpg: dark [01][.][0-9]*\n.*deeper/one.jpg: light [01][.][0-9]*\n"));
  write("list.txt", "validation/light/2.jpg\r\n\n" + dark + "\n");
  const std::string file = fresh("answers") + ".csv";
  answers({"--predict.images=" + folder_ + "/list.txt", "--predictions=" + file});
  EXPECT_THAT(read_file(file), testing::MatchesRegex("sample,file,class,probabilities/0,probabilities/1\n0," +
                                                     light + ",1,.*\n1," + dark + ",0,.*\n"));
  // Data with labels, by number and file.
  EXPECT_THAT(answers({"--data_url=" + folder_}), HasSubstr(dark + ": dark "));
  expect_error(run_process(job({"--run_mode=predict", "--predict.images=" + folder_ + "/nowhere"})),
               {"nowhere"}, 2);
  expect_error(
      run_process(job({"--run_mode=predict", "--predict.images=" + dark, "--data.on_bad_sample=skip"})),
      {"a bad image cannot be skipped"}, 2);
  write("missing.txt", "a.jpg\n");
  write("broken/1.jpg", "no image");
  expect_error(run_process(job({"--run_mode=predict", "--predict.images=" + folder_ + "/broken"})),
               {"broken/1.jpg", "take this one away"}, 1);
  expect_error(run_process(job({"--predict.images=" + dark})),
               {"run_mode is 'train'", "Set run_mode to predict"}, 2);
  expect_error(run_process(job({"--run_mode=predict", "--predict.images=" + folder_ + "/missing.txt"})),
               {"missing.txt', line 1", "a.jpg"}, 2);
  // Its checkpoint knows the classes, too, but for those of programs of before.
  fs::remove(log_dir_ + "/labels.txt");
  EXPECT_THAT(answers({"--predict.images=" + dark}), testing::StartsWith(dark + ": dark "));
  Checkpoint before = load_checkpoint(log_dir_);
  before.state.at("hooks") = "{}";
  save_checkpoint(log_dir_, before);
  expect_error(run_process(job({"--run_mode=predict", "--predict.images=" + dark})), {"labels.txt"}, 2);
}

TEST_F(ImageClassifier, EvaluatesAtAnotherSizeThanItTrains) {
  write_images();
  const Words resnet{"--model.name=resnet_v1_20", "--max_epochs=1"};
  expect_success(run_process(job(resnet)));
  const auto loss_with = [&](const Words& sizes) {
    const ProcessResult result = run_process(job(resnet + Words{"--run_mode=eval"} + sizes));
    expect_success(result);
    const size_t at = result.out.find("test loss: ");
    EXPECT_NE(at, std::string::npos) << result.out;
    return result.out.substr(at, result.out.find('\n', at) - at);
  };
  const std::string larger = loss_with({"--model.image_size=48"});
  EXPECT_EQ(loss_with({"--model.eval_image_size=48"}), larger);
  EXPECT_NE(loss_with({}), larger);
  const Words elsewhere{"--train_url=" + fresh("refused"), "--model.eval_image_size=48"};
  expect_error(run_process(job(elsewhere)), {"model.eval_image_size", "cifarnet", "32"}, 2);
  expect_error(run_process(job(elsewhere + Words{"--data.format=mnist", "--model.name=resnet_v1_20"})),
               {"model.eval_image_size", "mnist"}, 2);
}

// They are the training's, not that of what goes before it.
TEST_F(ImageClassifier, WhatFollowsEvaluationsBeginsAfterThePretraining) {
  write_images();
  const std::string snapshots = fresh("snapshots");
  const ProcessResult result = run_process(
      job({"--model.name=resnet_v1_20", "--pretraining.image_size=24", "--pretraining.epochs=1",
           "--max_epochs=1", "--eval_every_n_epochs=1", "--keep_best.metric=accuracy", "--keep_best.mode=max",
           "--keep_best.restore", "--early_stopping.metric=accuracy", "--early_stopping.patience=2",
           "--plateau.metric=loss", "--plateau.factor=0.5", "--snapshots.every_n_epochs=1",
           "--snapshots.from_epoch=1", "--snapshots.keep=9", "--snapshots.directory=" + snapshots}));
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("best accuracy: "));
  EXPECT_EQ(result.err, "");  // no warning of intervals either
  EXPECT_TRUE(fs::exists(log_dir_ + "/best"));
  EXPECT_FALSE(fs::exists(log_dir_ + "/pretraining/best"));
  EXPECT_TRUE(fs::exists(snapshots + "/snapshot-3.safetensors"));
}

// They are for the training that begins with what the pretraining has learnt.
TEST_F(ImageClassifier, PatternsOfACheckpointLeaveThePretrainingAlone) {
  write_images();
  const ProcessResult result =
      run_process(job({"--model.name=resnet_v1_20", "--pretraining.image_size=24", "--pretraining.epochs=1",
                       "--max_epochs=1", "--checkpoint_exclude_patterns=/logits/"}));
  expect_success(result);
  EXPECT_THAT(result.err, HasSubstr("2 begin with their initial values: resnet_v1_20/logits/bias"));
}

TEST_F(ImageClassifier, TrainsOnSmallImagesFirst) {
  write_images();
  const Words small{"--model.name=resnet_v1_20", "--pretraining.image_size=24"};
  const Words flags = small + Words{"--pretraining.epochs=2", "--pretraining.learning_rate=1:0.001,2:0.0005",
                                    "--max_epochs=1", "--log_level=info"};
  const ProcessResult first = run_process(job(flags));
  expect_success(first);
  EXPECT_THAT(first.out, HasSubstr("test accuracy"));
  EXPECT_TRUE(fs::exists(log_dir_ + "/pretraining/checkpoint-6"));
  EXPECT_TRUE(fs::exists(log_dir_ + "/checkpoint-3"));
  EXPECT_THAT(read_file(log_dir_ + "/pretraining/configuration.yaml"), HasSubstr("1:0.001,2:0.0005"));
  EXPECT_THAT(read_file(log_dir_ + "/configuration.yaml"),
              testing::AllOf(HasSubstr("learning_rate: 0.001"),
                             HasSubstr("checkpoint_path: \"" + log_dir_ + "/pretraining\"")));
  // As after an interruption of the first training.
  fs::remove_all(log_dir_ + "/checkpoint-0");
  fs::remove_all(log_dir_ + "/checkpoint-3");
  const ProcessResult again = run_process(job(flags + Words{"--pretraining.epochs=3"}));
  expect_success(again);
  EXPECT_THAT(again.err, HasSubstr("continuing from '" + log_dir_ + "/pretraining/checkpoint-6'"));
  EXPECT_TRUE(fs::exists(log_dir_ + "/pretraining/checkpoint-9"));
  // Once the second training has begun there is nothing to begin with.
  fs::remove_all(log_dir_ + "/pretraining");
  const ProcessResult longer = run_process(job(flags + Words{"--max_epochs=2"}));
  expect_success(longer);
  EXPECT_FALSE(fs::exists(log_dir_ + "/pretraining"));
  EXPECT_TRUE(fs::exists(log_dir_ + "/checkpoint-6"));

  const Words elsewhere{"--train_url=" + fresh("refused")};
  expect_error(run_process(job(small + elsewhere)), {"pretraining.epochs is 0"}, 2);
  expect_error(run_process(job(elsewhere + Words{"--pretraining.image_size=24", "--pretraining.epochs=1"})),
               {"pretraining.image_size is 24", "cifarnet", "32"}, 2);
  expect_error(run_process(job(flags + elsewhere + Words{"--data.format=mnist"})),
               {"pretraining.image_size", "mnist"}, 2);
}

TEST_F(ImageClassifier, TakesMixUpSmoothingAndACacheAndGoesOn) {
  write_images();
  // The last batch of a pass has three images.
  const Words flags{"--augmentation.mix_up=0.2", "--label_smoothing=0.1", "--data.cache=directory",
                    "--data.cache_directory=" + folder_ + "/cache", "--batch_size=7"};
  expect_success(run_process(job(flags + Words{"--max_epochs=2"})));
  expect_success(run_process(job(flags)));
  EXPECT_TRUE(fs::exists(folder_ + "/cache/train/copy-1/manifest.txt"));
}

TEST_F(ImageClassifier, ReadsRecordsThatConvertWrote) {
  write_images();
  for (const char* split : {"train", "validation"})
    expect_success(
        run_process({"mox", "convert", folder_ + "/" + split, folder_ + "/records/" + split, "--shards=2"}));
  const ProcessResult result =
      run_process(job({"--data.format=tfrecord", "--data_url=" + folder_ + "/records"}));
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("test accuracy: 1"));
  fs::remove(folder_ + "/records/labels.txt");
  const ProcessResult predicted = run_process(
      job({"--data.format=tfrecord", "--data_url=" + folder_ + "/records", "--run_mode=predict"}));
  expect_success(predicted);
  EXPECT_THAT(predicted.out, HasSubstr(": dark "));
}

// An image may be dark, red, or both.
TEST_F(ImageClassifier, TrainsOnManyLabels) {
  for (int i = 0; i < 24; ++i)
    for (const char* split : {"train", "validation"}) {
      image::Bitmap picture = image::picture(40, 40, static_cast<uint64_t>(i));
      for (size_t at = 0; at < picture.pixels.size(); ++at) {
        uint8_t& value = picture.pixels[at];
        value = static_cast<uint8_t>(i % 2 ? value / 4 : 255 - value / 4);
        if (i % 3 == 0 && at % image::kPixelBytes != 0) value = 0;
      }
      const std::string name = std::to_string(i) + ".jpg";
      write(std::string(split) + "/images/" + name, image::encode_jpeg(picture));
      write(std::string(split) + "/labels/" + name + ".txt",
            std::string(i % 2 ? "dark\n" : "") + (i % 3 == 0 ? "red\n" : ""));
    }
  const ProcessResult result = run_process(job({"--data.format=multilabel_folder", "--max_epochs=40"}));
  expect_success(result);
  EXPECT_THAT(result.out, testing::AnyOf(HasSubstr("test accuracy: 0.9"), HasSubstr("test accuracy: 1")));
  EXPECT_EQ(read_file(log_dir_ + "/labels.txt"), "0: dark\n1: red\n");
  // The run knows the classes: of other data only the part that is evaluated is needed, and may lack some.
  for (int i = 0; i < 24; ++i) {
    const std::string name = std::to_string(i) + ".jpg";
    write("other/validation/images/" + name, read_file(folder_ + "/validation/images/" + name));
    write("other/validation/labels/" + name + ".txt", i % 3 == 0 ? "red\n" : "");
  }
  const ProcessResult other = run_process(
      job({"--data.format=multilabel_folder", "--run_mode=eval", "--data_url=" + folder_ + "/other"}));
  expect_success(other);
  EXPECT_THAT(other.err, HasSubstr("no images of 1 of the 2 classes: dark"));
  expect_error(run_process(job({"--data.format=multilabel_folder", "--class_weights=red=2"})),
               {"class_weights", "has no class of its own"}, 2);
  expect_error(run_process(job({"--data.format=multilabel_folder", "--augmentation.mix_up=0.2"})), {"mix_up"},
               2);
}

TEST_F(ImageClassifier, TrainsOnArraysOfNumpy) {
  write("make.py", R"(
import sys, zipfile, io, struct
def npy(descr, shape, data):
    header = repr({'descr': descr, 'fortran_order': False, 'shape': shape}).encode() + b'\n'
    return b'\x93NUMPY\x01\0' + struct.pack('<H', len(header)) + header + data
for split in ('train', 'test'):
    with zipfile.ZipFile(sys.argv[1] + '/' + split + '.npz', 'w') as archive:
        pixels = b''.join(bytes([(40 if i % 2 else 200) + (i * j) % 40 for j in range(3 * 32 * 32)]) for i in range(24))
        archive.writestr('images.npy', npy('|u1', (24, 3, 32, 32), pixels))
        archive.writestr('labels.npy', npy('<i8', (24,), b''.join(struct.pack('<q', i % 2) for i in range(24))))
)");
  expect_success(run_process({"/usr/bin/env", "python3", folder_ + "/make.py", folder_}));
  const ProcessResult result = run_process(job({"--data.format=npz", "--max_epochs=40"}));
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("test accuracy: 1"));
  fs::remove_all(log_dir_);
  expect_error(run_process(job({"--data.format=npz", "--data.num_classes=1"})), {"one class alone"}, 2);
  expect_error(run_process(job({"--data.format=npz", "--data_url=" + folder_ + "/none"})), {"none/train.npz"},
               2);
}

// 24 images of two classes, each a line of its label and its pixels.
std::string lines_of_images(char delimiter) {
  std::ostringstream lines;
  lines << "label" << delimiter << "pixels\n";
  for (int i = 0; i < 24; ++i) {
    lines << i % 2;
    for (int j = 0; j < 3 * 32 * 32; ++j) lines << delimiter << (i % 2 ? 40 : 200) + i * j % 40;
    lines << "\n";
  }
  return lines.str();
}
const Words kCsv{"--data.format=csv", "--data.csv_header", "--max_epochs=40"};

TEST_F(ImageClassifier, TrainsAndPredictsOnLinesOfNumbers) {
  for (const char* file : {"train.csv", "test.csv"}) write(file, lines_of_images(','));
  const ProcessResult result = run_process(job(kCsv));
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("test accuracy: 1"));
  // A prediction takes the lines with their labels, whatever these are, and without.
  std::string answers;
  for (const bool with_label : {true, false}) {
    std::istringstream lines(read_file(folder_ + "/test.csv"));
    std::string unlabelled;
    for (std::string line; std::getline(lines, line);)
      unlabelled += (with_label ? "-7" : "") + line.substr(line.find(',') + (with_label ? 0 : 1)) + "\n";
    write("unlabelled.csv", unlabelled);
    const std::string file = folder_ + "/answers.jsonl";
    expect_success(run_process(
        job(kCsv + Words{"--run_mode=predict", "--data.eval_split=unlabelled", "--predictions=" + file})));
    const std::string found = read_file(file);
    EXPECT_EQ(std::ranges::count(found, '\n'), 24);
    EXPECT_TRUE(answers.empty() || answers == found);
    answers = found;
  }
  // A delimiter at the end of each line makes a cell more of it: pixels would move, and the first be a label.
  std::string delimited = read_file(folder_ + "/unlabelled.csv");
  for (size_t at = 0; (at = delimited.find('\n', at)) != std::string::npos; at += 2)
    delimited.insert(at, ",");
  write("unlabelled.csv", delimited);
  expect_error(run_process(job(kCsv + Words{"--run_mode=predict", "--data.eval_split=unlabelled",
                                            "--data.csv_missing=0"})),
               {"unlabelled.csv", "last of the 3073 cells is missing in every line"});
  write("unlabelled.csv", "header\n1,2,3\n");
  expect_error(run_process(job(kCsv + Words{"--run_mode=predict", "--data.eval_split=unlabelled"})),
               {"3 numbers", "3073, an image alone 3072"});
}

TEST_F(ImageClassifier, LinesOfNumbersThatAreNoSuchImagesAreRefused) {
  for (const char* file : {"train.csv", "test.csv"}) write(file, lines_of_images(','));
  expect_error(run_process(job(kCsv + Words{"--model.image_size=28"})),
               {"train.csv", "3073 numbers", "2353", "model.image_size"});
  expect_error(run_process(job(kCsv + Words{"--data.num_classes=1"})), {"one class alone"}, 2);
  expect_error(run_process(job(kCsv + Words{"--data.csv_maximum=0"})), {"data.csv_maximum"}, 2);
  for (const char* offset : {"-9223372036854775808", "9223372036854775807", "2147483648"})
    expect_error(run_process(job(kCsv + Words{std::string("--data.label_offset=") + offset})),
                 {"data.label_offset", offset, "-2147483647 to 2147483647"}, 2);
  for (const char* label : {"0.5", "-1", "16777218"}) {
    write("train.csv", std::string(label) + ",1\n");
    expect_error(run_process(job({"--data.format=csv", "--model.name=lenet", "--model.image_size=1"})),
                 {"train.csv"});
  }
}

// As spreadsheets of many countries write it.
TEST_F(ImageClassifier, TrainsOnLinesWithSemicolonsAndDecimalCommas) {
  for (const char* file : {"train.csv", "test.csv"}) {
    std::string lines = lines_of_images(';');
    const auto put_behind = [&](const std::string& label, const std::string& cell) {
      const size_t at = lines.find("\n" + label) + 1 + label.size();
      lines.replace(at, lines.find(';', at) - at, cell);
    };
    put_behind("0;", "12,5");
    put_behind("1;", "NA");
    write(file, lines);
  }
  const Words dialect{"--data.csv_delimiter=;", "--data.csv_decimal=,"};
  expect_error(run_process(job(kCsv + dialect)), {"train.csv", "NA", "data.csv_missing says"});
  expect_success(run_process(job(kCsv + dialect + Words{"--data.csv_missing=0", "--max_epochs=1"})));
  expect_error(run_process(job(kCsv + Words{"--data.csv_delimiter=;;"})), {"data.csv_delimiter"}, 2);
  expect_error(run_process(job(kCsv + Words{"--data.csv_missing=none"})), {"data.csv_missing"}, 2);
}

// What a run computes with and on is said in the YAML like everything else.
TEST_F(ImageClassifier, TakesPrecisionAndDevicesFromItsYaml) {
  write_images();
  write("job.yaml", "precision: bf16\nnum_devices: 2\nlogical_replicas: 2\nmax_number_of_steps: 2\n");
  const ProcessResult result = run_process(job({"--config=" + folder_ + "/job.yaml", "--print_plan"}));
  expect_success(result);
  // A processor without instructions for it computes in float32, and the run says so.
  const bool has_bfloat16 = bfloat16_support() != BFloat16Support::kNone;
  EXPECT_EQ(result.out.find("bfloat16") != std::string::npos, has_bfloat16) << result.out;
  EXPECT_EQ(result.err.find("float32 stands in for it") != std::string::npos, !has_bfloat16) << result.err;
  expect_success(run_process(job({"--config=" + folder_ + "/job.yaml"})));
  const std::string used = read_file(log_dir_ + "/configuration.yaml");
  EXPECT_THAT(used, HasSubstr("precision: \"bf16\""));
  EXPECT_THAT(used, HasSubstr("num_devices: 2"));
}

// The lines of a printed plan that cast a batch of images of this size.
int image_casts_in(const std::string& plan, int size) {
  const std::string image = ", 3, " + std::to_string(size) + ", " + std::to_string(size) + "]";
  int count = 0;
  std::istringstream lines(plan);
  for (std::string line; std::getline(lines, line);)
    count += line.find(" cast ") != std::string::npos && line.find(image) != std::string::npos;
  return count;
}

// Images come in bfloat16 where the first convolution takes that, from files of images and from mixtures.
TEST_F(ImageClassifier, MakesImagesInThePrecisionOfTheRun) {
  if (bfloat16_support() == BFloat16Support::kNone) GTEST_SKIP() << "needs AVX-512, for bfloat16";
  write_images();
  for (const Words& flags : {Words{}, Words{"--augmentation.mix_up=0.2"}, Words{"--run_mode=eval"},
                             Words{"--augmentation.colour_jitter=0.1,0.1,0.1,0.1"}}) {
    const ProcessResult narrow = run_process(job(flags + Words{"--precision=bf16", "--print_plan"}));
    expect_success(narrow);
    EXPECT_THAT(narrow.out, HasSubstr("bfloat16[64, 3, 5, 5]")) << "the filters are cast";
    EXPECT_EQ(image_casts_in(narrow.out, 32), 0) << narrow.out;
    const ProcessResult wide = run_process(job(flags + Words{"--print_plan"}));
    expect_success(wide);
    EXPECT_THAT(wide.out, testing::Not(HasSubstr("bfloat16")));
  }
  const Words trained{"--max_number_of_steps=4", "--augmentation.mix_up=0.2"};
  expect_success(run_process(job(trained + Words{"--precision=bf16"})));
  expect_success(run_process(job(Words{"--max_number_of_steps=6", "--augmentation.mix_up=0.2"})));  // goes on
}

TEST_F(ImageClassifier, SaysWhatIsWrongWithItsData) {
  write_images();
  expect_error(run_process(job({"--data.format=zip"})), {"data.format", "'zip'", "image_folder"}, 2);
  expect_error(run_process(job({"--data_url=" + folder_ + "/none"})), {"none/train"}, 2);
  expect_error(run_process(job({"--model.name=resnet_v1_19"})), {"resnet_v1_19", "resnet_v1_18"}, 2);
  // Another directory than that of the splits.
  expect_error(run_process(job({"--data_url=" + folder_ + "/train"})),
               {"train/train", "SPLIT/CLASS/IMAGE", "dark/, light/", "data.train_split is 'train'"}, 2);
  expect_error(run_process(job({"--data.eval_split=test"})),
               {"/test'", "train/, validation/", "data.eval_split is 'test'"}, 2);
  fs::remove_all(log_dir_);
  write("train/dark/1.jpg", "no image");
  expect_error(run_process(job({})), {"train/dark/1.jpg"});
  fs::remove_all(log_dir_);
  expect_success(run_process(job({"--data.on_bad_sample=skip"})));
  fs::rename(folder_ + "/validation/light", folder_ + "/validation/white");
  expect_error(run_process(job({"--max_epochs=11", "--data.on_bad_sample=skip"})),
               {"validation", "classes that the run does not have: white"});
  fs::rename(folder_ + "/train/light", folder_ + "/train/white");
  expect_error(run_process(job({"--max_epochs=11", "--data.on_bad_sample=skip"})), {"cannot be continued"},
               2);
}

// The bad image's place is taken by the next good one, and more than the limit end the run.
TEST_F(ImageClassifier, CountsBadImages) {
  write_images();
  for (int i = 1; i < 12; i += 2) write("train/dark/" + std::to_string(i) + ".jpg", "");
  expect_error(run_process(job({"--data.on_bad_sample=skip", "--data.max_bad_samples=5"})),
               {"limit of 5", "train/dark"});
  // A class may not be swallowed.
  expect_success(run_process(job({"--data.on_bad_sample=skip"})));  // half of it
  write("train/dark/13.jpg", "");
  fs::remove_all(log_dir_);
  expect_error(run_process(job({"--data.on_bad_sample=skip"})),
               {"7 of the 12 images of class 'dark'", "data.max_bad_share", "train/dark"});
  expect_success(run_process(job({"--data.on_bad_sample=skip", "--data.max_bad_share=1"})));
}

class CifarResnet : public ImageClassifier {};

TEST_F(CifarResnet, TrainsOnFilesMadeFromFashionMnist) {
  expect_success(
      run_process({"/usr/bin/env", "python3", MOX_SOURCE_DIR "/models/cifar_resnet/make_cifar_files.py",
                   folder_, "--samples", "40"}));
  const Words common{"--train_url=" + log_dir_, "--max_number_of_steps=3", "--batch_size=20",
                     "--log_level=warning"};
  const ProcessResult binary = run_process(Words{"cifar_resnet", "--data_url=" + folder_} + common);
  expect_success(binary);
  fs::remove_all(log_dir_);
  fs::remove_all(folder_ + "/cifar-10-batches-bin");
  const ProcessResult python = run_process(Words{"cifar_resnet", "--data_url=" + folder_} + common);
  expect_success(python);
  EXPECT_EQ(test_lines(python.out), test_lines(binary.out));  // the two versions hold the same images
  if (bfloat16_support() == BFloat16Support::kNone) return;
  const ProcessResult narrow = run_process(
      Words{"cifar_resnet", "--data_url=" + folder_, "--precision=bf16", "--print_plan"} + common);
  expect_success(narrow);
  EXPECT_THAT(narrow.out, HasSubstr("bfloat16[20, 16, 32, 32]"));
  EXPECT_EQ(image_casts_in(narrow.out, 32), 0) << narrow.out;
}

}  // namespace
}  // namespace mox
