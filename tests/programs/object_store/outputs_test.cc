// What programs and commands write besides a run, in an object store.
#include <filesystem>

#include "runtime/base/file.h"
#include "tests/moxing/image/images.h"
#include "tests/programs/object_store/store_of_programs.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class StoredOutput : public TrainingTest {
 protected:
  Words job(const Words& flags) const {
    return training("mnist_softmax", log_dir_, 10, Words{"--file.local_directory=" + places_} + flags);
  }
  // Nothing that was on its way is left, and no directory "s3:".
  void expect_nothing_left(const std::string& places) const {
    EXPECT_FALSE(fs::exists("s3:"));
    if (!fs::exists(places)) return;
    for (const auto& entry : fs::directory_iterator(places))
      EXPECT_FALSE(entry.path().filename().string().starts_with("staging-")) << entry.path();
  }
  std::string content(const std::string& key) {
    const auto found = store_.server.content("bucket", key);
    EXPECT_TRUE(found) << key;
    return found ? *found : "";
  }

  StoreOfPrograms store_;
  const std::string places_ = fresh("places");
};

TEST_F(StoredOutput, PredictionsAreThoseOfALocalFile) {
  expect_success(run_process(job({})));
  for (const std::string ending : {".csv", ".jsonl", ".npz"}) {
    const std::string local = fresh("answers") + ending;
    expect_success(run_process(job({"--run_mode=predict", "--predictions=" + local})));
    expect_success(run_process(job({"--run_mode=predict", "--predictions=s3://bucket/of/run" + ending})));
    EXPECT_EQ(content("of/run" + ending), read_file(local));
  }
  expect_nothing_left(places_);
  expect_error(run_process(job({"--run_mode=predict", "--predictions=s3://bucket/of"})),
               {"'s3://bucket/of' is a directory"}, 2);
  expect_error(run_process(job({"--run_mode=predict", "--predictions=s3://bucket"})), {"names no file"}, 2);
}

TEST_F(StoredOutput, ConversionsAreThoseOfALocalFolder) {
  const std::string folder = fresh("photographs"), records = fresh("records");
  for (const std::string class_name : {"ant", "bee"})
    for (int i = 0; i < 3; ++i) {
      const std::string name = class_name + "/" + std::to_string(i) + ".png",
                        image = image::encode_png(image::picture(8, 8, i));
      make_directories(folder + "/" + class_name);
      write_file_atomically(folder + "/" + name, image);
      store_.server.put("bucket", "photographs/" + name, image);
    }
  expect_success(run_process({"mox", "convert", folder, records + "/train", "--shards=2"}));
  const std::string cache = fresh("cache");
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const ProcessResult stored =
      run_process({"mox", "convert", "s3://bucket/photographs", "s3://bucket/records/train", "--shards=2"});
  expect_success(stored);
  EXPECT_THAT(stored.out, HasSubstr("s3://bucket/records/train-00000-of-00002"));
  for (const std::string shard : {"train-00000-of-00002", "train-00001-of-00002"})
    EXPECT_GT(content("records/" + shard).size(), 0U);
  EXPECT_EQ(content("records/labels.txt"), read_file(records + "/labels.txt"));
  // Another part of the set is numbered by the list that is there.
  store_.server.put("bucket", "records/labels.txt", "0: bee\n1: ant\n");
  expect_success(run_process({"mox", "convert", folder, "s3://bucket/records/validation"}));
  EXPECT_THAT(content("records/labels.txt"), HasSubstr("bee"));
  EXPECT_LT(content("records/labels.txt").find("bee"), content("records/labels.txt").find("ant"));
  expect_nothing_left(cache + "/moxing");
  ::unsetenv("XDG_CACHE_HOME");
}

// Where a store cannot be written to or read from, its names are refused before the first step.
TEST_F(StoredOutput, WhatIsOfThisMachineOnlyIsRefused) {
  for (const std::string option : {"--snapshots.directory=", "--step_profile=", "--config="})
    expect_error(run_process(job({"--snapshots.every_n_steps=1", option + "s3://bucket/out"})),
                 {"s3://bucket/out"}, 2);
  // Stage 2 has weights to begin with, so that its places are what is refused.
  ASSERT_EQ(run_process(job({"--snapshots.every_n_steps=1"})).status, 0);
  for (const std::string option : {"--dim_reduce.pca_mat_path=", "--dim_reduce.weight_load_dir="})
    expect_error(run_process(job({"--snapshots.every_n_steps=1", "--boost.dim_reduce=true",
                                  "--dim_reduce.n_components=2", option + "s3://bucket/out"})),
                 {"s3://bucket/out"}, 2);
  expect_error(run_process(job({"--train_url=s3://bucket/run", "--file.local_directory=s3://bucket/out"})),
               {"s3://bucket/out"}, 2);
  EXPECT_FALSE(fs::exists("s3:"));
}

}  // namespace
}  // namespace mox
