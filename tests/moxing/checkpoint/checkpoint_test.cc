#include "moxing/checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "moxing/checkpoint/internal/checkpoint_directory.h"
#include "moxing/checkpoint/safetensors.h"
#include "moxing/engine/session/starting_point.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/checkpoint/checkpoint_samples.h"
#include "tests/support/locale_asking_thread.h"

namespace mox {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kFiles[] = {"variables.safetensors", "optimizer.safetensors", "state.json"};

template <typename Exception = DataError>
std::string load_error(const std::string& path) {
  try {
    load_checkpoint(path);
  } catch (const Exception& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << path << " was loaded without an error";
  return "";
}

void overwrite(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

TEST(Checkpoint, AUrlIsNoPlaceOfThisMachine) {
  for (const char* url : {"s3://bucket/run", "s3:/bucket/run", "obs://bucket/run", "file:///run"}) {
    EXPECT_THROW(list_checkpoints(url), InvalidArgument);
    EXPECT_THROW(load_latest_checkpoint(url), InvalidArgument);
    EXPECT_THROW(prepare_checkpoint_directory(url), InvalidArgument);
    EXPECT_THROW(save_checkpoint(url, sample_checkpoint(1, 1)), InvalidArgument);
    EXPECT_THAT(load_error<InvalidArgument>(url), HasSubstr(url));
  }
}

TEST(Checkpoint, ComesBackAsItWasSaved) {
  const std::string log_dir = fresh_directory("round_trip") + "/made/with/parents";
  Checkpoint saved = sample_checkpoint(12, 5);
  saved.state = {{"text", R"( "a\nb" )"},
                 {"cursor", R"({"z": [1, 2.5, -3], "a": {"big": 18446744073709551615}})"},
                 {"nothing", "null"},
                 {"tiny", "0.1"}};
  const std::string path = save_checkpoint(log_dir, saved);
  EXPECT_EQ(path, log_dir + "/checkpoint-12");
  for (const std::string& from : {log_dir, path, path + "/", log_dir + "/.", log_dir + "//checkpoint-12"}) {
    const Checkpoint loaded = load_checkpoint(from);
    EXPECT_EQ(loaded.global_step, 12);
    ASSERT_EQ(loaded.variables.size(), 2u);
    EXPECT_EQ(loaded.variables[0].name, "layer/bias");
    EXPECT_EQ(loaded.variables[1].name, "layer/weights");
    EXPECT_EQ(loaded.variables[1].value.values<float>()[2], 5);
    EXPECT_EQ(loaded.optimizer_slots.at(0).value.values<float>()[0], -5);
    EXPECT_EQ(loaded.state.at("text"), R"("a\nb")");
    EXPECT_EQ(loaded.state.at("cursor"), R"({"z":[1,2.5,-3],"a":{"big":18446744073709551615}})");
    EXPECT_EQ(loaded.state.at("nothing"), "null");
    EXPECT_EQ(loaded.state.at("tiny"), "0.1");
  }
  EXPECT_THAT(names_in(path), ElementsAre("optimizer.safetensors", "state.json", "variables.safetensors"));
}

// Under a locale with a decimal comma (tests/locale) a fraction was refused by chance, as a whole number of
// more than 64 bits, and so was a checkpoint that was well.
TEST(Checkpoint, DoesNotDependOnOtherThreadsLocales) {
  const LocaleAskingThread other;
  const std::string log_dir = fresh_directory("locales");
  Checkpoint saved = sample_checkpoint(12, 5);
  for (int i = 0; i < 100; ++i) saved.state[fmt::format("rate {}", i)] = "[0.25,1.0]";
  for (int i = 0; i < 30; ++i) {
    save_checkpoint(log_dir, saved);
    EXPECT_EQ(load_checkpoint(log_dir).state.at("rate 7"), "[0.25,1.0]");
  }
}

TEST(Checkpoint, AnEmptyOneAndARelativePathWork) {
  const std::string log_dir = fresh_directory("relative");
  fs::create_directories(log_dir);
  const fs::path before = fs::current_path();
  fs::current_path(log_dir);
  save_checkpoint(".", {});
  EXPECT_EQ(load_checkpoint("checkpoint-0").global_step, 0);
  EXPECT_TRUE(load_checkpoint(".").variables.empty());
  fs::current_path(before);
}

TEST(Checkpoint, WhatCannotComeBackIsNotSaved) {
  const std::string log_dir = fresh_directory("refused");
  const std::string deep = std::string(101, '[') + std::string(101, ']');
  for (const std::string& value : {std::string(""), std::string("{"), std::string("nan"), std::string("1 2"),
                                   std::string("1\0", 2), std::string("18446744073709551616"), deep}) {
    Checkpoint checkpoint = sample_checkpoint(1, 1);
    checkpoint.state["bad"] = value;
    EXPECT_THROW(save_checkpoint(log_dir, checkpoint), InvalidArgument) << value;
  }
  Checkpoint checkpoint = sample_checkpoint(1, 1);
  checkpoint.state["\xff"] = "1";
  EXPECT_THROW(save_checkpoint(log_dir, checkpoint), InvalidArgument);
  checkpoint = sample_checkpoint(1, 1);
  checkpoint.variables.push_back(checkpoint.variables[0]);
  EXPECT_THROW(save_checkpoint(log_dir, checkpoint), InvalidArgument);
  EXPECT_THROW(save_checkpoint(log_dir, sample_checkpoint(-1, 1)), InvalidArgument);
  EXPECT_THROW(save_checkpoint(log_dir, sample_checkpoint(1, 1), {.keep_last = 0}), InvalidArgument);
  EXPECT_THAT(names_in(log_dir), ElementsAre());
}

TEST(Checkpoint, EveryFlippedByteOfEveryFileIsRefused) {
  const std::string log_dir = fresh_directory("flip");
  const std::string path = save_checkpoint(log_dir, sample_checkpoint(3, 1));
  for (const char* name : kFiles) {
    const std::string file = path + "/" + name, good = read_file(file);
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
      overwrite(file, bad);
      EXPECT_THAT(load_error(path), HasSubstr(file)) << "byte " << i;
    }
    overwrite(file, good);
  }
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 3, 1));
}

TEST(Checkpoint, EveryTruncationAndEveryMissingFileIsRefused) {
  const std::string log_dir = fresh_directory("truncate");
  const std::string path = save_checkpoint(log_dir, sample_checkpoint(3, 1));
  for (const char* name : kFiles) {
    const std::string file = path + "/" + name, good = read_file(file);
    for (size_t length = 0; length < good.size(); ++length) {
      overwrite(file, good.substr(0, length));
      EXPECT_THAT(load_error(path), HasSubstr(file)) << "length " << length;
    }
    overwrite(file, good + "\n");
    EXPECT_THAT(load_error(path), HasSubstr(file));
    fs::remove(file);
    EXPECT_THAT(load_error(path), HasSubstr("a file is missing: no file '" + file));
    EXPECT_THAT(load_error(log_dir), HasSubstr("a file is missing: no file '" + file));
    overwrite(file, good);
  }
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 3, 1));
}

TEST(Checkpoint, FilesOfAnotherCheckpointAreRefused) {
  const std::string log_dir = fresh_directory("mixed");
  const std::string first = save_checkpoint(log_dir, sample_checkpoint(1, 1));
  const std::string second = save_checkpoint(log_dir, sample_checkpoint(2, 2));
  for (const char* name : {"variables.safetensors", "optimizer.safetensors"}) {
    const std::string good = read_file(second + "/" + name);
    overwrite(second + "/" + name, read_file(first + "/" + name));
    EXPECT_THAT(load_error(second), HasSubstr("is not the file that"));
    overwrite(second + "/" + name, good);
  }
  fs::rename(second, log_dir + "/checkpoint-3");
  EXPECT_THAT(load_error(log_dir), HasSubstr("of step 2, the directory's name says 3"));
  fs::rename(log_dir + "/checkpoint-3", log_dir + "/best");
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir + "/best"), 2, 2));
}

TEST(Checkpoint, ADamagedOneNamesTheIntactOneBeforeIt) {
  const std::string log_dir = fresh_directory("advice");
  for (int64_t step : {10, 20, 30}) save_checkpoint(log_dir, sample_checkpoint(step, 1));
  const std::string latest = log_dir + "/checkpoint-30";
  fs::remove(latest + "/state.json");
  EXPECT_THAT(load_error(log_dir),
              HasSubstr("The newest older checkpoint that is intact is '" + log_dir +
                        "/checkpoint-20' (step 20). To go on from it, remove or move away '" + latest +
                        "' and run again, or start in another log_dir with --checkpoint_path=" + log_dir +
                        "/checkpoint-20"));
  overwrite(log_dir + "/checkpoint-20/state.json", "{}");
  EXPECT_THAT(load_error(log_dir), HasSubstr("is '" + log_dir + "/checkpoint-10' (step 10)"));
  fs::remove_all(log_dir + "/checkpoint-10");
  EXPECT_THAT(load_error(log_dir), HasSubstr("There is no older checkpoint that is intact"));
}

TEST(Checkpoint, NoCheckpointIsNotFound) {
  const std::string log_dir = fresh_directory("none");
  EXPECT_THAT(load_error<NotFound>(log_dir), HasSubstr("there is no such directory"));
  EXPECT_EQ(latest_checkpoint(log_dir), std::nullopt);
  fs::create_directories(log_dir + "/checkpoint-5.saving");
  EXPECT_THAT(load_error<NotFound>(log_dir), HasSubstr("neither one nor does it hold"));
  EXPECT_EQ(latest_checkpoint(log_dir), std::nullopt);
  overwrite(log_dir + "/file", "");
  EXPECT_THAT(load_error<NotFound>(log_dir + "/file"), HasSubstr("it is not a directory"));
  EXPECT_THROW(list_checkpoints(log_dir + "/file"), IoError);
}

TEST(Checkpoint, ListIsOrderedByStepAndTakesNothingElse) {
  const std::string log_dir = fresh_directory("list");
  for (const char* name :
       {"checkpoint-9", "checkpoint-10", "checkpoint-100", "checkpoint-007", "checkpoint--1", "checkpoint-",
        "checkpoint-5x", "checkpoint-99999999999999999999", "checkpoint-11.saving", "checkpoint-12.deleting",
        "checkpoint-13.previous", "checkpoint-9.previous", "other"})
    fs::create_directories(log_dir + "/" + name);
  overwrite(log_dir + "/checkpoint-1000", "a file");
  std::vector<std::string> names;
  for (const CheckpointEntry& entry : list_checkpoints(log_dir)) {
    names.push_back(fs::path(entry.path).filename().string());
    EXPECT_TRUE(names.back().starts_with("checkpoint-" + std::to_string(entry.step)));
  }
  EXPECT_THAT(names,
              ElementsAre("checkpoint-9", "checkpoint-10", "checkpoint-13.previous", "checkpoint-100"));
}

TEST(Checkpoint, RetentionKeepsTheLastAndEveryMthAndAlwaysTheNewOne) {
  const std::string log_dir = fresh_directory("retention");
  for (int64_t step = 10; step <= 80; step += 10)
    save_checkpoint(log_dir, sample_checkpoint(step, 1), {.keep_last = 2, .keep_every_steps = 30});
  EXPECT_THAT(names_in(log_dir),
              ElementsAre("checkpoint-30", "checkpoint-60", "checkpoint-70", "checkpoint-80"));
  // A run that went back to an earlier step saves among newer ones.
  save_checkpoint(log_dir, sample_checkpoint(5, 1), {.keep_last = 1});
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-5", "checkpoint-80"));
}

TEST(Checkpoint, WhatIsKeptForGoodStaysUntilItIsReplaced) {
  const std::string log_dir = fresh_directory("for_good");
  const auto save = [&](int64_t step, bool keep_for_good) {
    Checkpoint checkpoint = sample_checkpoint(step, 1);
    checkpoint.keep_for_good = keep_for_good;
    save_checkpoint(log_dir, checkpoint, {.keep_last = 1});
  };
  save(10, true);
  save(20, false);
  save(30, true);
  save(40, false);
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-10", "checkpoint-30", "checkpoint-40"));
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir + "/checkpoint-10"), 10, 1));
  save(30, false);
  save(50, false);
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-10", "checkpoint-50"));
}

TEST(Checkpoint, TheSameStepAgainReplaces) {
  const std::string log_dir = fresh_directory("again");
  save_checkpoint(log_dir, sample_checkpoint(1, 1));
  save_checkpoint(log_dir, sample_checkpoint(1, 2));
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 1, 2));
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-1"));
}

TEST(Checkpoint, ReplacingWithoutExchangeOfNamesWorksToo) {
  const std::string log_dir = fresh_directory("exchange");
  const std::string other = fresh_directory("exchange_source");
  save_checkpoint(log_dir, sample_checkpoint(1, 1));
  save_checkpoint(other, sample_checkpoint(1, 2));
  fs::rename(other + "/checkpoint-1", log_dir + "/checkpoint-1.saving");
  internal::publish_checkpoint(log_dir, 1, /*can_exchange=*/false);
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 1, 2));
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-1"));
  // The new one cannot be moved into place, because it is missing: the former one is back.
  EXPECT_THROW(internal::publish_checkpoint(log_dir, 1, /*can_exchange=*/false), IoError);
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 1, 2));
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-1"));
}

TEST(Checkpoint, LeftoversOfACrashAreCleanedAndNeverTaken) {
  const std::string log_dir = fresh_directory("leftovers");
  const std::string path = save_checkpoint(log_dir, sample_checkpoint(4, 1));
  const auto copy_to = [&](const std::string& name) { fs::copy(path, log_dir + "/" + name); };
  copy_to("checkpoint-9.saving");
  fs::remove(log_dir + "/checkpoint-9.saving/state.json");
  copy_to("checkpoint-3.deleting");
  copy_to("checkpoint-4.previous");
  EXPECT_EQ(latest_checkpoint(log_dir), path);
  prepare_checkpoint_directory(log_dir);
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-4"));

  // Between the two renames of a replacement the former one is the checkpoint.
  fs::rename(path, path + ".previous");
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 4, 1));
  save_checkpoint(log_dir, sample_checkpoint(5, 2));
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-4", "checkpoint-5"));
  EXPECT_TRUE(is_sample(load_checkpoint(path), 4, 1));
}

TEST(Checkpoint, SaversAndReadersAtOnceSeeWholeCheckpoints) {
  const std::string log_dir = fresh_directory("concurrent");
  save_checkpoint(log_dir, sample_checkpoint(0, 0));
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0, reads = 0;
  std::thread reader([&] {
    do {
      try {
        const Checkpoint loaded = load_checkpoint(log_dir);
        if (!is_sample(loaded, loaded.global_step, static_cast<float>(loaded.global_step))) ++wrong;
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
        ++wrong;
      }
      ++reads;
    } while (!done);
  });
  std::vector<std::thread> savers;
  for (int64_t saver = 0; saver < 2; ++saver)
    savers.emplace_back([&, saver] {
      for (int64_t i = 1; i <= 20; ++i)
        save_checkpoint(log_dir, sample_checkpoint(i * 2 + saver, static_cast<float>(i * 2 + saver)),
                        {.keep_last = 1});
    });
  for (std::thread& saver : savers) saver.join();
  done = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(reads, 0);
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 41, 41));
}

// As an evaluation does it beside the training, whose only checkpoint may be gone the moment after
// it was found.
TEST(Checkpoint, TheLatestIsFoundAndReadBesideARunThatReplacesIt) {
  internal::RunSettings settings;
  settings.places.log_dir = fresh_directory("beside");
  save_checkpoint(settings.places.log_dir, sample_checkpoint(0, 0));
  std::atomic<bool> done = false;
  std::thread saver([&] {
    for (int64_t step = 1; step <= 100; ++step)
      save_checkpoint(settings.places.log_dir, sample_checkpoint(step, static_cast<float>(step)),
                      {.keep_last = 1});
    done = true;
  });
  std::string failure;
  do {
    try {
      const internal::StartingPoint start = internal::find_starting_point(settings);
      const int64_t step = start.checkpoint.global_step;
      EXPECT_EQ(start.kind, internal::StartingPoint::Kind::kContinued);
      EXPECT_EQ(start.path, settings.places.log_dir + "/checkpoint-" + std::to_string(step));
      EXPECT_TRUE(is_sample(start.checkpoint, step, static_cast<float>(step)));
    } catch (const std::exception& error) {
      failure = error.what();
    }
  } while (!done);
  saver.join();
  EXPECT_EQ(failure, "");
}

// The value was computed by Python's hashlib over the bytes that the digest is defined by:
// b"1 b int64[]\n" + pack("<q", -5) + b"1 w float32[2, 1]\n" + pack("<ff", 1, -2).
TEST(Checkpoint, TheDigestIsOverTheVariablesAlone) {
  constexpr const char* kDigest = "3ea3d10ad69c7d381cfdf125a41b3d8f1bbecdfb406a2049e38719aa3b62a910";
  const NamedArray b{"b", Array::scalar<int64_t>(-5)}, w{"w", Array::from<float>({2, 1}, {1, -2})};
  EXPECT_EQ(arrays_digest(std::vector{w, b}), kDigest);
  const std::string one = fresh_directory("digest_one"), two = fresh_directory("digest_two");
  Checkpoint checkpoint{.global_step = 1, .variables = {w, b}, .optimizer_slots = {}, .state = {}};
  save_checkpoint(one, checkpoint);
  checkpoint = {.global_step = 2, .variables = {b, w}, .optimizer_slots = {w}, .state = {{"a", "1"}}};
  save_checkpoint(two, checkpoint);
  EXPECT_EQ(checkpoint_digest(one), kDigest);
  EXPECT_EQ(checkpoint_digest(two), kDigest);
  for (const NamedArray& other :
       {NamedArray{"v", w.value}, NamedArray{"w", Array::from<float>({1, 2}, {1, -2})},
        NamedArray{"w", Array::from<float>({2, 1}, {1, 2})},
        NamedArray{"w", Array::from_bytes({DType::kInt32, {2, 1}}, w.value.as_bytes())}})
    EXPECT_NE(arrays_digest(std::vector{other, b}), kDigest);
}

}  // namespace
}  // namespace mox
