// Data that would give an answer that looks right and is none: the pre-set job on images says so.
#include <models/zoo/image_model.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/file.h"
#include "tests/programs/image_classifier_test.h"
#include "tests/support/message_of.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class ImageData : public ImageClassifierTest {
 protected:
  // SPLIT.npz of 24 images: type and values of the images, in Python, by sample i, pixel j and class k; their
  // labels by class.
  void write_npz(const std::string& type, const std::string& pixel, const std::string& labels,
                 const std::string& label_type = "<i8", const std::string& splits = "train,test",
                 const std::pair<std::string, std::string>& change = {}) const {
    std::string script = R"(
import sys, zipfile, struct
folder, code, pixel, labels, label_code, splits = sys.argv[1:]
labels = eval(labels)
def npy(descr, shape, data):
    header = repr({'descr': descr, 'fortran_order': False, 'shape': shape}).encode() + b'\n'
    return b'\x93NUMPY\x01\0' + struct.pack('<H', len(header)) + header + data
def packed(descr, values):
    letter = {'u1': 'B', 'i1': 'b', 'u2': 'H', 'i2': 'h', 'i4': 'i', 'i8': 'q', 'f4': 'f', 'f8': 'd'}[descr[1:]]
    return struct.pack('<%d%s' % (len(values), letter), *values)
value = eval('lambda i, j, k: ' + pixel)
for split in splits.split(','):
    with zipfile.ZipFile(folder + '/' + split + '.npz', 'w') as archive:
        pixels = [value(i, j, i % len(labels)) for i in range(24) for j in range(3 * 32 * 32)]
        archive.writestr('images.npy', npy(code, (24, 3, 32, 32), packed(code, pixels)))
        archive.writestr('labels.npy', npy(label_code, (24,), packed(label_code, [labels[i % len(labels)] for i in range(24)])))
)";
    if (!change.first.empty()) script.replace(script.find(change.first), change.first.size(), change.second);
    write("make.py", script);
    expect_success(run_process(
        {"/usr/bin/env", "python3", folder_ + "/make.py", folder_, type, pixel, labels, label_type, splits}));
  }
  ProcessResult run_npz(const Words& flags = {}) const {
    fs::remove_all(log_dir_);
    return run_process(job(Words{"--data.format=npz", "--max_epochs=1"} + flags));
  }
  // Bytes of two classes.
  const std::string bytes_ = "(40 if k % 2 else 200) + (i * j) % 40";
};

TEST_F(ImageData, OneClassAloneIsRefused) {
  write_images();
  for (const char* split : {"train", "validation"}) fs::remove_all(folder_ + "/" + split + "/light");
  expect_error(run_process(job({})), {"one class alone, 'dark'", "at least two"}, 2);
  write_npz("|u1", bytes_, "[0]");
  expect_error(run_npz(), {"one class alone, '0'"}, 2);
  std::string lines;
  for (int i = 0; i < 16; ++i) {
    lines += "0";
    for (int j = 0; j < 3 * 32 * 32; ++j) lines += "," + std::to_string(i * j % 255);
    lines += "\n";
  }
  write("train.csv", lines);
  write("test.csv", lines);
  expect_error(run_process(job({"--data.format=csv"})), {"one class alone, '0'"}, 2);
  for (const char* split : {"train", "validation"})
    expect_success(run_process({"mox", "convert", folder_ + "/" + split, folder_ + "/records/" + split}));
  expect_error(run_process(job({"--data.format=tfrecord", "--data_url=" + folder_ + "/records"})),
               {"one class alone, 'dark'"}, 2);
  expect_error(run_process(job({"--data.format=tfrecord", "--data.num_classes=-1"})),
               {"data.num_classes is -1"}, 2);
}

TEST_F(ImageData, LabelsWithGapsAreSaid) {
  write_npz("|u1", bytes_, "[1, 2, 3]");
  ProcessResult result = run_npz();
  expect_success(result);
  EXPECT_THAT(result.err, AllOf(HasSubstr("1 of the 4 classes 0 to 3 have no sample: 0"),
                                HasSubstr("data.label_offset"), HasSubstr("data.num_classes")));
  result = run_npz({"--data.label_offset=1"});
  expect_success(result);
  EXPECT_THAT(result.err, Not(HasSubstr("no sample")));
  EXPECT_EQ(read_file(log_dir_ + "/labels.txt"), "0: 0\n1: 1\n2: 2\n");
  expect_error(run_npz({"--data.label_offset=2"}), {"label 1 of sample 0", "data.label_offset, 2"});
  EXPECT_THAT(run_npz({"--data.num_classes=4"}).err, Not(HasSubstr("no sample")));
  write_npz("|u1", bytes_, "[0, 2, 7]");
  result = run_npz();
  expect_success(result);
  EXPECT_THAT(result.err, HasSubstr("5 of the 8 classes 0 to 7 have no sample: 1, 3, 4, 5, 6"));
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 2) << "that, and the same data for both: " << result.err;
  write_npz("|u1", bytes_, "[0, 9]");
  EXPECT_THAT(run_npz().err, HasSubstr("8 of the 10 classes 0 to 9 have no sample: 1, 2, 3, 4, 5, ..."));
}

// The list of their names alone would take the machine's memory.
TEST_F(ImageData, IdentifiersAsLabelsAreRefused) {
  write_npz("|u1", bytes_, "[5, 2000000000]");
  expect_error(run_npz(), {"the label 2000000000", "2 different labels", "return_inverse"});
  write_npz("|u1", bytes_, "[0, 1]");
  for (const char* count : {"-1", "1048577", "9223372036854775807"})
    expect_error(run_npz({std::string("--data.num_classes=") + count}),
                 {std::string("data.num_classes is ") + count + " (command line)", "0 to 1048576"}, 2);
}

TEST_F(ImageData, FloatsThatNobodyHasScaledAreRefused) {
  write_npz("<f4", bytes_, "[0, 1]");
  expect_error(run_npz(), {"float32", "whole numbers 0 to 238", "images.astype('uint8')", "images / 255"});
  write_npz("<f4", "-1000 + 1500.5 * (k % 2)", "[0, 1]");
  const ProcessResult result = run_npz();
  expect_success(result);
  EXPECT_THAT(result.err, AllOf(HasSubstr("float32 from -1000 to 500.5"), HasSubstr("images / 1000")));
  write_npz("<f4", "(k % 2) * 0.9 + j / 40000", "[0, 1]");
  EXPECT_THAT(run_npz().err, Not(HasSubstr("float32")));
  write_npz("<f4", "float('nan') if i == 5 and j == 7 else 0.5", "[0, 1]");
  expect_error(run_npz(), {"image 5 has a value that is not finite"});
}

// Two classes would become one.
TEST_F(ImageData, ACsvLabelThatFloat32DoesNotHoldIsRefused) {
  std::string lines;
  for (const char* label : {"16777216", "16777217"}) {
    lines += label;
    for (int j = 0; j < 3 * 32 * 32; ++j) lines += ",7";
    lines += "\n";
  }
  write("train.csv", lines);
  write("test.csv", lines);
  expect_error(run_process(job({"--data.format=csv", "--data.label_offset=16777216"})),
               {"cannot be the number of a class, less data.label_offset", "below 2^24 is expected"});
}

TEST_F(ImageData, PixelsOfAnotherRangeThanTheCsvOptionAreSaid) {
  std::string lines, wide;
  for (int i = 0; i < 16; ++i) {
    lines += std::to_string(i % 2);
    wide += std::to_string(i % 2);
    for (int j = 0; j < 3 * 32 * 32; ++j) {
      lines += i % 2 ? ",0.25" : ",1";
      wide += i % 2 ? ",12" : ",4095";
    }
    lines += "\n";
    wide += "\n";
  }
  const auto said_of = [&](const std::string& text, const Words& flags) {
    write("train.csv", text);
    write("test.csv", text);
    fs::remove_all(log_dir_);
    const ProcessResult result = run_process(job(Words{"--data.format=csv", "--max_epochs=1"} + flags));
    expect_success(result);
    return result.err;
  };
  EXPECT_THAT(said_of(lines, {}), HasSubstr("is data.csv_maximum=1 meant?"));
  EXPECT_THAT(said_of(lines, {"--data.csv_maximum=1"}), Not(HasSubstr("csv_maximum")));
  EXPECT_THAT(said_of(wide, {}), HasSubstr("is data.csv_maximum=4095 meant?"));
  EXPECT_THAT(said_of(wide, {"--data.csv_maximum=4095"}), Not(HasSubstr("csv_maximum")));
}

TEST_F(ImageData, TypesAreNamedAsTheyAreStored) {
  write_npz("<u2", bytes_, "[0, 1]");
  expect_error(run_npz(), {"they are uint16[24, 3, 32, 32]", "astype('uint8')"});
  write_npz("|i1", "i", "[0, 1]");
  expect_error(run_npz(), {"they are int8[24, 3, 32, 32]"});
  write_npz("|u1", bytes_, "[0, 1]", "<f4");
  expect_error(run_npz(), {"labels must be whole numbers", "float32[24]", "labels.astype('int64')"});
  write_npz("|u1", bytes_, "[0, 1]", "<f8");
  expect_error(run_npz(), {"labels.npy", "labels.astype('int64')"});
}

TEST_F(ImageData, ArraysOfAnotherSizeThanTheOptionAreRefused) {
  write_npz("|u1", bytes_, "[0, 1]");
  const Words resnet{"--model.name=resnet_v1_20"};
  expect_error(run_npz(resnet + Words{"--model.image_size=64"}),
               {"model.image_size is 64 (command line)", "train.npz' are 32 x 32", "not resized"}, 2);
  expect_success(run_npz(resnet + Words{"--model.image_size=0"}));
}

// With the line that mends it.
TEST_F(ImageData, ArraysOfOtherShapesAndNamesAreSaid) {
  const struct {
    std::string from, to, says;
  } odd[] = {
      {"(24, 3, 32, 32)", "(24, 32, 32, 3)", "would have 32 channels"},
      {"(24, 3, 32, 32)", "(24, 32, 32, 3)", "save images.transpose(0, 3, 1, 2)"},
      {"(24, 3, 32, 32)", "(32, 32, 3, 24)", "numpy.transpose brings the axes into this order"},
      {"(24, 3, 32, 32)", "(24, 32, 96)",
       "uint8[24, 32, 96]; if they are grey, [samples, height, width], save images[:, None]"},
      {"(24, 3, 32, 32)", "(24, 3072)", "images.reshape(len(images), CHANNELS, HEIGHT, WIDTH)"},
      {"'images.npy'", "'x_train.npy'", "it has x_train, labels. Expected are 'images' [samples, channels,"},
      {"'labels.npy'", "'y.npy'", "numpy.savez(FILE, images=..., labels=...)"},
      {"label_code, (24,)", "label_code, (24, 1)", "int64[24, 1]; save labels[:, 0]"},
      {"label_code, (24,)", "'<i4', (24, 2)", "save labels.argmax(axis=1)"},
      {"label_code, (24,)", "'<U2', (24,)",
       "are text, and numbers are expected; names of classes are numbered by numpy.unique("},
      {"label_code, (24,)", "'|S8', (24,)", "numpy.unique("},
      {"label_code, (24,)", "'|O', (24,)",
       "a pickle, which is not read; save an array of one type of numbers"}};
  for (const auto& [from, to, says] : odd) {
    SCOPED_TRACE(to);
    write_npz("|u1", bytes_, "[0, 1]", "<i8", "train,test", {from, to});
    expect_error(run_npz(), {says}, from.ends_with(".npy'") ? 2 : 1);
  }
}

// The run knows the classes, as of folders: other data need no part that is trained on, nor all classes.
TEST_F(ImageData, EvaluatesArraysThatLackAClass) {
  write_npz("|u1", bytes_, "[0, 1, 2]");
  expect_success(run_npz());
  const auto evaluate = [&](const Words& flags = {}) {
    return run_process(job(Words{"--data.format=npz", "--run_mode=eval"} + flags));
  };
  fs::remove(folder_ + "/train.npz");
  expect_success(evaluate());
  write_npz("|u1", bytes_, "[0, 1]", "<i8", "test");
  expect_success(evaluate());
  expect_error(evaluate({"--data.num_classes=2"}), {"trained with 3 classes", "has 2"});
  write_npz("|u1", bytes_, "[0, 3]", "<i8", "test");
  expect_error(evaluate(), {"test.npz': label 3 is out of range: expected 0 to 2"});
  write_npz("|u1", bytes_, "[0]", "<i8", "test", {"'labels.npy'", "'other.npy'"});
  expect_error(evaluate(), {"has no array 'labels'"}, 2);
  const ProcessResult predicted = run_process(job({"--data.format=npz", "--run_mode=predict"}));
  expect_success(predicted);
  EXPECT_THAT(predicted.out, HasSubstr("sample 23: "));
  // A checkpoint without the run's list: the arrays that were trained on have it.
  write_npz("|u1", bytes_, "[0, 1, 2]");
  const std::string copied = fresh("copied") + "/checkpoint";
  fs::create_directories(fs::path(copied).parent_path());
  fs::copy(mox::latest_checkpoint(log_dir_).value(), copied, fs::copy_options::recursive);
  const ProcessResult elsewhere =
      run_process(job({"--data.format=npz", "--run_mode=predict", "--checkpoint_path=" + copied,
                       "--train_url=" + fresh("none")}));
  expect_success(elsewhere);
  EXPECT_EQ(elsewhere.out, run_process(job({"--data.format=npz", "--run_mode=predict"})).out);
}

// What a recipe would make of a file is not what they have learnt from.
TEST_F(ImageData, APredictorOfFilesTakesNoNetworkOfArrays) {
  write_npz("|u1", bytes_, "[0, 1]");
  expect_success(run_npz());
  const auto said = [&] { return message_of<InvalidArgument>([&] { ImagePredictor{log_dir_}; }); };
  EXPECT_THAT(said(),
              AllOf(HasSubstr("data.format npz"), HasSubstr("cifarnet"), HasSubstr("mox::Predictor")));
  // The file of an older program says nothing of it, its checkpoint does.
  const std::string file = log_dir_ + "/image_model.json";
  auto json = nlohmann::json::parse(read_file(file));
  json.erase("array_format");
  write_file_atomically(file, json.dump());
  EXPECT_THAT(said(), HasSubstr("data.format npz"));
}

TEST_F(ImageData, EvaluationOnTheTrainingDataIsSaid) {
  write_images();
  EXPECT_THAT(run_process(job({"--max_epochs=1"})).err, Not(HasSubstr("how well")));
  fs::remove_all(log_dir_);
  fs::remove_all(folder_ + "/validation");
  fs::copy(folder_ + "/train", folder_ + "/validation", fs::copy_options::recursive);
  const ProcessResult copy = run_process(job({"--max_epochs=1"}));
  expect_success(copy);
  EXPECT_THAT(copy.err, AllOf(HasSubstr("14 of 14 samples"), HasSubstr("validation/dark/1.jpg"),
                              HasSubstr("train/dark/1.jpg"), HasSubstr("how well")));
  const ProcessResult evaluated = run_process(job({"--run_mode=eval", "--data.eval_split=train"}));
  expect_success(evaluated);
  EXPECT_THAT(evaluated.err, AllOf(HasSubstr("was trained on"), HasSubstr(log_dir_)));
  // A few of them.
  for (int i = 0; i < 12; ++i)
    fs::remove(folder_ + "/validation/" + (i % 2 ? "dark/" : "light/") + std::to_string(i) + ".jpg");
  fs::remove_all(log_dir_);
  EXPECT_THAT(
      run_process(job({"--max_epochs=1"})).err,
      AllOf(HasSubstr("validation/dark/13.jpg"), HasSubstr("train/dark/13.jpg"), HasSubstr("how well")));
}

TEST_F(ImageData, NamesOfClassesThatNoListCanShowAreRefused) {
  write_images();
  for (const char* split : {"train", "validation"})
    fs::rename(folder_ + "/" + split + "/dark", folder_ + "/" + split + "/da\nrk");
  expect_error(run_process(job({})), {"the class 'da\\nrk'", "another name"});
  for (const char* split : {"train", "validation"})
    fs::rename(folder_ + "/" + split + "/da\nrk", folder_ + "/" + split + "/ \"dark");
  expect_success(run_process(job({"--max_epochs=1"})));
  EXPECT_EQ(read_file(log_dir_ + "/labels.txt"), "0: \" \\\"dark\"\n1: light\n");
  expect_success(run_process(job({"--run_mode=eval"})));
}

TEST_F(ImageData, AnImageBesideTheClassesIsNamedAsThat) {
  write_images();
  write("train/x.png", "");
  const std::string said = run_process(job({"--max_epochs=1"})).err;
  EXPECT_THAT(said,
              AllOf(HasSubstr("1 image is outside of the directories of the classes"), HasSubstr("x.png")));
  EXPECT_THAT(said, Not(HasSubstr("not called")));
}

// One class has another name and the same place in the order: without a list nothing would be right, and
// nobody would hear of it.
TEST_F(ImageData, ACheckpointThatWasMovedKnowsItsClasses) {
  write_images();
  expect_success(run_process(job({"--max_epochs=1"})));
  const std::string moved = fresh("moved") + "/checkpoint";
  fs::create_directories(fs::path(moved).parent_path());
  fs::copy(latest_checkpoint(log_dir_).value(), moved, fs::copy_options::recursive);
  const Words evaluate{"--run_mode=eval", "--checkpoint_path=" + moved, "--train_url=" + fresh("none")};
  const ProcessResult same = run_process(job(evaluate));
  expect_success(same);
  EXPECT_THAT(same.err, Not(HasSubstr("classes")));
  fs::rename(folder_ + "/validation/dark", folder_ + "/validation/zdark");
  fs::rename(folder_ + "/train/dark", folder_ + "/train/zdark");
  expect_error(run_process(job(evaluate)),
               {"classes that the run does not have: zdark", "its 2 classes are dark, light"});
}

TEST_F(ImageData, OptionsThatNobodyGivesAreThoseOfTheRun) {
  write_images();
  const ProcessResult trained = run_process(job({"--model.image_size=40", "--model.name=resnet_v1_20"}));
  expect_success(trained);
  const Words bare{"image_classifier", "--data_url=" + folder_, "--train_url=" + log_dir_, "--run_mode=eval",
                   "--log_level=warning"};
  const ProcessResult evaluated = run_process(bare);
  expect_success(evaluated);
  EXPECT_EQ(test_lines(evaluated.out), test_lines(trained.out));
  expect_error(run_process(bare + Words{"--model.name=cifarnet"}),
               {"model.name is 'cifarnet' (command line)", "'resnet_v1_20'", "Leave the option out"}, 2);
  expect_error(run_process(bare + Words{"--augmentation.recipe=lenet"}), {"augmentation.recipe is 'lenet'"},
               2);
  expect_error(run_process(bare + Words{"--data.format=npz"}),
               {"data.format is 'npz'", "'image_folder'", "scaled otherwise"}, 2);
}

// To programs of before, MobileNets had LeNet's preprocessing: what learnt with that is not given another.
TEST_F(ImageData, AMobileNetOfAnOlderProgramKeepsItsPreprocessing) {
  write_images();
  const Words mobilenet{"--model.name=mobilenet_v1_025", "--max_epochs=1"};
  const ProcessResult trained = run_process(job(mobilenet + Words{"--augmentation.recipe=lenet"}));
  expect_success(trained);
  Checkpoint before = load_checkpoint(log_dir_);
  auto hooks = nlohmann::json::parse(before.state.at("hooks"));
  auto options = nlohmann::json::parse(hooks.at("options").get<std::string>());
  options.erase("recipes");
  options["augmentation.recipe"] = "";
  hooks["options"] = options.dump();
  before.state["hooks"] = hooks.dump();
  save_checkpoint(log_dir_, before);
  const ProcessResult evaluated = run_process(job(mobilenet + Words{"--run_mode=eval"}));
  expect_success(evaluated);
  EXPECT_EQ(test_lines(evaluated.out), test_lines(trained.out));
  EXPECT_THAT(evaluated.err, AllOf(HasSubstr("'mobilenet_v1_025'"), HasSubstr("augmentation.recipe=lenet")));
  expect_error(run_process(job(mobilenet + Words{"--run_mode=eval", "--augmentation.recipe="})),
               {"augmentation.recipe is '' (command line)", "preprocessing of 'lenet'"}, 2);
  // From then on its checkpoints say it.
  expect_success(run_process(job(mobilenet + Words{"--max_epochs=2"})));
  const ProcessResult later = run_process(job(mobilenet + Words{"--run_mode=eval"}));
  expect_success(later);
  EXPECT_THAT(later.err, Not(HasSubstr("mobilenet")));
  EXPECT_THAT(read_file(log_dir_ + "/image_model.json"), HasSubstr("\"recipe\": \"lenet\""));
  // A new run has the recipe of its own.
  const ProcessResult anew = run_process(job(mobilenet + Words{"--train_url=" + fresh("anew")}));
  expect_success(anew);
  EXPECT_NE(test_lines(anew.out), test_lines(trained.out));
}

TEST_F(ImageData, ABatchThatDoesNotFitIsNamedByItsOption) {
  write_images();
  expect_success(run_process(job({})));
  expect_error(run_process(job({"--run_mode=eval", "--eval_batch_size=1000000000000"})),
               {"bytes of memory", "eval_batch_size"});
}

// A directory whose name would match another one as a pattern, or be two of them.
TEST_F(ImageData, RecordsAreThoseOfTheDirectoryThatIsNamed) {
  write_images();
  for (const std::string name : {"tf[1]", "one,two"})
    for (const char* split : {"train", "validation"})
      expect_success(
          run_process({"mox", "convert", folder_ + "/" + split, folder_ + "/" + name + "/" + split}));
  write("tf1/train-00000-of-00001", "damage");
  for (const char* name : {"/tf[1]", "/one,two"}) {
    fs::remove_all(log_dir_);
    expect_success(run_process(job({"--data.format=tfrecord", std::string("--data_url=") + folder_ + name})));
  }
}

}  // namespace
}  // namespace mox
