// The schema travels with the checkpoint: evaluation, prediction and Predictor read as the training did.
#include "moxing/tabular/kept_table_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "moxing/moxing.h"
#include "runtime/base/file.h"
#include "tests/moxing/small_run.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class KeptTableSchema : public ::testing::Test {
 protected:
  static data::CsvTable table(int rows, int step = 1) {
    std::string text = "size,city,price\n";
    for (int i = 0; i < rows; ++i)
      text += std::to_string(i * step % 7) + (i % 2 ? ",Ulm," : ",Bern,") +
              std::to_string(i % 7 * 2 + i % 2) + "\n";
    return data::parse_csv_table(text, ',', "t.csv");
  }
  static ModelSpec model_fn(const Inputs& in, ModeKeys mode) {
    const Tensor prediction = layers::dense(in[0], 1, {.name = "output"});
    if (mode == ModeKeys::PREDICT) return {.output_info = {{"prediction", prediction}}};
    return {.loss = mean_squared_error(reshape(prediction, {prediction.shape()[0]}), in[1])};
  }
  // On data that are read by one schema; `schema` is what is kept.
  void train(const TableSchema& schema, int64_t steps) const {
    const TableSchema reader = TableSchema::fit(table(20), {.target = "price"});
    run_or_throw({.input_fn = [&](ModeKeys) { return table_dataset(reader, table(20)).repeat(); },
                  .model_fn = model_fn,
                  .optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.1}),
                  .batch_size = 5,
                  .log_dir = log_dir_,
                  .max_number_of_steps = steps,
                  .log_every_n_steps = 0,
                  .hooks = {table_schema_hook(schema)}});
  }

  const ScopedConfiguration configuration_{
      std::vector<std::string>{"--threads=1", "--num_devices=1", "--log_level=error"}};
  TemporaryDirectory directory_;
  const std::string log_dir_ = directory_.file("run");
};

// On a disk there is nothing by that name.
TEST_F(KeptTableSchema, AUrlIsNoPlaceWithoutACheckpoint) {
  const std::string url = "s3://bucket/run";
  for (const ModeKeys mode : {ModeKeys::TRAIN, ModeKeys::EVAL})
    EXPECT_THAT(message_of<InvalidArgument>([&] { kept_table_schema(mode, url, ""); }),
                AllOf(HasSubstr(url), HasSubstr("log_dir_of_run")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { kept_table_schema(ModeKeys::EVAL, "", url); }),
              HasSubstr("checkpoint_path_of_run"));
}

TEST_F(KeptTableSchema, IsInTheCheckpointItself) {
  const TableSchema schema = TableSchema::fit(table(20), {.target = "price"});
  EXPECT_FALSE(kept_table_schema(ModeKeys::TRAIN, log_dir_, ""));
  train(schema, 3);
  EXPECT_EQ(read_table_schema(log_dir_), schema);
  // A copy of the checkpoint alone will do.
  std::filesystem::copy(log_dir_ + "/checkpoint-3", directory_.file("elsewhere"));
  EXPECT_EQ(read_table_schema(directory_.file("elsewhere")), schema);
  EXPECT_EQ(kept_table_schema(ModeKeys::PREDICT, "", directory_.file("elsewhere")), schema);
  EXPECT_EQ(kept_table_schema(ModeKeys::TRAIN, log_dir_, ""), schema);
  EXPECT_THAT(message_of<ConfigError>([&] { kept_table_schema(ModeKeys::EVAL, directory_.file("no"), ""); }),
              HasSubstr("train first"));
}

TEST_F(KeptTableSchema, ARunDoesNotGoOnWithAnother) {
  train(TableSchema::fit(table(20), {.target = "price"}), 3);
  EXPECT_THAT(
      message_of<FailedPrecondition>([&] { train(TableSchema::fit(table(9, 2), {.target = "price"}), 4); }),
      AllOf(HasSubstr("'size' had a mean of"), HasSubstr("another log_dir")));
  EXPECT_THAT(message_of<FailedPrecondition>([&] {
                train(TableSchema::fit(table(20), {.target = "price", .categories = {"size"}}), 4);
              }),
              HasSubstr("its 3 features were size, city=Bern, city=Ulm"));
}

TEST_F(KeptTableSchema, ACheckpointOfAnotherProgramHasNone) {
  run_or_throw(one_weight_run(log_dir_, 1));
  EXPECT_THAT(message_of<NotFound>([&] { read_table_schema(log_dir_); }), HasSubstr("holds no schema"));
}

TEST_F(KeptTableSchema, PredictorAndPredictSayTheSame) {
  train(TableSchema::fit(table(20), {.target = "price"}), 5);
  const TableSchema schema = read_table_schema(log_dir_);
  const data::CsvTable rows = data::parse_csv_table("city,size\nUlm,3\nBern,2\nUlm,6\n", ',', "new.csv");
  Array expected;
  run_or_throw({.input_fn = [&](ModeKeys) { return table_dataset(schema, rows, {.with_target = false}); },
                .model_fn = model_fn,
                .output_fn =
                    [&](std::span<const OutputBatch> batches) {
                      expected = batches[0].array("prediction");
                      EXPECT_THAT(batches[0].sample_names,
                                  ::testing::ElementsAre("new.csv:2", "new.csv:3", "new.csv:4"));
                    },
                .run_mode = ModeKeys::PREDICT,
                .batch_size = 3,
                .log_dir = log_dir_});
  const Predictor predictor(log_dir_, model_fn);
  const std::vector<Array> features = {table_features(schema, rows)};
  const OutputBatch answer = predictor.predict(features);
  ASSERT_EQ(answer.array("prediction").type(), expected.type());
  EXPECT_EQ(std::memcmp(answer.array("prediction").data(), expected.data(), expected.bytes()), 0);
}

}  // namespace
}  // namespace mox
