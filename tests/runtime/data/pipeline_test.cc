// The pipeline as a machine: memory, errors, stopping, statistics.
#include "runtime/data/pipeline.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <chrono>
#include <set>
#include <thread>

#include "runtime/base/error.h"
#include "tests/runtime/data/pipeline_testing.h"

namespace mox {
namespace {

using namespace data_testing;
using testing::AllOf;
using testing::HasSubstr;

template <typename Type, typename Function>
void expect_throws(Function&& function, const std::vector<std::string>& texts) {
  try {
    function();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Type& error) {
    for (const auto& text : texts) EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

TEST(Memory, RowsInTheirOrderAreViews) {
  const Array array = numbers_array(range(0, 10));
  Pipeline pipeline(Dataset::from_arrays({array}).repeat(2).batch(4), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_EQ(batch.components[0].data(), array.data());
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_EQ(batch.components[0].data(), array.data() + 16);
  ASSERT_TRUE(pipeline.next(&batch));  // 8, 9, 0, 1: across the end of the pass
  EXPECT_EQ(rows_of(batch), (Numbers{8, 9, 0, 1}));
  EXPECT_FALSE(pipeline.statistics().threaded);
}

TEST(Memory, CachedRowsInTheirOrderAreViews) {
  Pipeline pipeline(slow(numbers(8)).cache().repeat(3).batch(4), {.threads = 0});
  std::vector<const std::byte*> places;
  for (Batch batch; pipeline.next(&batch);) places.push_back(batch.components[0].data());
  ASSERT_EQ(places.size(), 6u);
  EXPECT_EQ(places[2], places[4]);
  EXPECT_EQ(places[3], places[2] + 16);
}

TEST(Memory, BuffersAreAlignedRecycledAndNeverSharedWhileHeld) {
  const Dataset dataset =
      Dataset::from_arrays({Array(DType::kFloat32, {64, 1024})}).shuffle(64).repeat().batch(8);
  for (int threads : {0, 2}) {
    Pipeline pipeline(dataset, {.threads = threads, .prefetch_batches = 2});
    std::set<const std::byte*> places;
    Batch held;
    ASSERT_TRUE(pipeline.next(&held));
    for (int i = 0; i < 200; ++i) {
      Batch batch;
      ASSERT_TRUE(pipeline.next(&batch));
      EXPECT_NE(batch.components[0].data(), held.components[0].data());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(batch.components[0].data()) % 64, 0u);
      places.insert(batch.components[0].data());
    }
    EXPECT_LE(places.size(), 8u);
  }
}

TEST(Memory, ABatchOutlivesItsPipeline) {
  Batch batch;
  {
    Pipeline pipeline(Dataset::from_arrays({Array::from<float>({2}, {1, 2})}).shuffle(2).batch(2), {});
    ASSERT_TRUE(pipeline.next(&batch));
  }
  EXPECT_EQ(batch.components[0].values<float>()[0] + batch.components[0].values<float>()[1], 3);
}

TEST(Memory, TheBudgetBoundsBatchesInFlightAndCaches) {
  const Dataset dataset = Dataset::from_arrays({Array(DType::kFloat32, {64, 1024})});
  const Dataset slowed = dataset.batch(8).map([](const Element& e) {
    work();
    return e;
  });
  Pipeline pipeline(slowed, {.threads = 2, .prefetch_batches = 50, .memory_budget_bytes = 3 * 8 * 4096});
  for (Batch batch; pipeline.next(&batch);) {
  }
  EXPECT_EQ(pipeline.statistics().in_flight_limit, 3);
  expect_throws<FailedPrecondition>(
      [&] { Pipeline(dataset.cache().batch(8), {.memory_budget_bytes = 64 * 4096}); },
      {"cache", "262208 bytes", "memory_budget_bytes"});
  expect_throws<FailedPrecondition>(
      [&] { run(generated(100).cache().batch(8), {.memory_budget_bytes = 99 * 4}); },
      {"cache", "memory_budget_bytes"});
}

// What a filter keeps can be read again: the window then holds places, and the order and the bits stay.
TEST(Memory, AShuffleOverTheBudgetHoldsPlacesOfWhatCanBeReadAgain) {
  const auto wide = [](const Dataset& dataset) {
    return dataset.map([](const Element& e) -> Element {
      Array row(DType::kInt32, Shape{256});
      row.values<int32_t>()[0] = value_of(e);
      return {row};
    });
  };
  const auto is_odd = [](const Element& e) { return value_of(e) % 2 == 1; };
  const auto shuffled = [&](const Dataset& dataset) {
    return wide(dataset).filter(is_odd).shuffle(300).batch(4);
  };
  const Dataset dataset = shuffled(numbers(1000));
  const Batches expected = run(dataset, {.seed = 5});
  ASSERT_EQ(expected.size(), 125u);
  // 300 rows of a kibibyte are more than the budget, 300 places are not.
  const PipelineOptions little{.seed = 5, .memory_budget_bytes = 100 << 10};
  EXPECT_EQ(run(dataset, little), expected);
  const auto batched = [&](const PipelineOptions& options) {
    return run(wide(numbers(1000)).filter(is_odd).batch(2).shuffle(150), options);
  };
  EXPECT_EQ(batched(little), batched({.seed = 5}));
  const auto twice = [&](const PipelineOptions& options) {
    const auto is_no_multiple = [](const Element& e) { return value_of(e) % 3 != 0; };
    return run(wide(wide(numbers(1000)).filter(is_odd)).filter(is_no_multiple).shuffle(300).batch(4),
               options);
  };
  EXPECT_EQ(twice(little), twice({.seed = 5}));
  // A generator has no places.
  expect_throws<FailedPrecondition>([&] { run(shuffled(generated(1000)), little); },
                                    {"shuffle", "its buffer of 300 elements", "memory_budget_bytes"});
  expect_throws<FailedPrecondition>([&] { run(dataset, {.seed = 5, .memory_budget_bytes = 8 << 10}); },
                                    {"shuffle", "its buffer of 300 elements", "memory_budget_bytes"});
}

TEST(Memory, ProducersWaitForTheConsumer) {
  auto made = std::make_shared<std::atomic<int>>(0);
  const Dataset dataset = numbers(1000).map(kScalar, [made](const SampleContext&, const Element& e) {
    ++*made;
    work();
    return e;
  });
  Pipeline pipeline(dataset.batch(1), {.threads = 2, .prefetch_batches = 3});
  Batch batch;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(pipeline.next(&batch));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(pipeline.statistics().threaded);
  EXPECT_LE(*made, 10 + 5);
  EXPECT_GT(*made, 10);
}

struct OwnError : std::exception {
  const char* what() const noexcept override { return "mine"; }
};

class Errors : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, Errors, testing::Values(0, 1, 2));

// Runs until an error of `Type`, which must come in batch `batch` of 4 and stay.
template <typename Type>
std::string error_in_batch(const Dataset& dataset, int threads, int batch) {
  Pipeline pipeline(dataset.batch(4), {.threads = threads});
  Batch got;
  for (int i = 0; i < batch; ++i) EXPECT_TRUE(pipeline.next(&got)) << i;
  const std::string cursor = pipeline.cursor();
  std::string text;
  for (int again = 0; again < 2; ++again) {
    try {
      pipeline.next(&got);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Type& error) {
      text = error.what();
    }
  }
  EXPECT_EQ(pipeline.cursor(), cursor) << "a failed batch moves nothing";
  return text;
}

template <typename Type>
Dataset failing_at(int32_t value) {
  return numbers(100).map(kScalar, [value](const SampleContext&, const Element& e) {
    work();
    if (value_of(e) == value) {
      if constexpr (std::is_same_v<Type, OwnError>)
        throw OwnError();
      else
        throw Type("bad pixel");
    }
    return e;
  });
}

TEST_P(Errors, OfAUsersFunctionKeepTheirTypeAndNameTheSample) {
  EXPECT_THAT(error_in_batch<DataError>(failing_at<DataError>(42), GetParam(), 10),
              AllOf(HasSubstr("map (data/pipeline_test.cc:"), HasSubstr("sample 42 of pass 0"),
                    HasSubstr("bad pixel")));
  EXPECT_THAT(error_in_batch<std::out_of_range>(failing_at<std::out_of_range>(42), GetParam(), 10),
              HasSubstr("sample 42 of pass 0"));
  EXPECT_EQ(error_in_batch<OwnError>(failing_at<OwnError>(42), GetParam(), 10), "mine");
}

TEST_P(Errors, OfAPredicateOrGeneratorComeWithTheirBatch) {
  const Dataset filtered = slow(numbers(100)).filter([](const Element& e) {
    if (value_of(e) == 42) throw DataError("bad label");
    return true;
  });
  EXPECT_THAT(error_in_batch<DataError>(filtered, GetParam(), 10),
              AllOf(HasSubstr("filter ("), HasSubstr("sample 42 of pass 0: bad label")));
  const Dataset broken = Dataset::from_generator(kScalar, []() -> Generator {
    return [i = 0](Element* element) mutable {
      work();
      if (i == 42) throw IoError("no line");
      *element = scalar_element(i++);
      return true;
    };
  });
  EXPECT_THAT(error_in_batch<IoError>(broken, GetParam(), 10), HasSubstr("sample 42 of pass 0: no line"));
}

TEST_P(Errors, ResultsOfAnotherTypeAreRefused) {
  const Dataset ragged = numbers(20).map([](const Element& e) {
    work();
    return Element{Array(DType::kInt32, Shape{value_of(e) == 9 ? 3 : 2})};
  });
  EXPECT_THAT(error_in_batch<InvalidArgument>(ragged, GetParam(), 2),
              AllOf(HasSubstr("sample 9"), HasSubstr("int32[3]"), HasSubstr("expected int32[2]")));
  const Dataset fewer = Dataset::from_generator(kScalar, []() -> Generator {
    return [](Element* element) {
      *element = {};
      return true;
    };
  });
  EXPECT_THAT(error_in_batch<InvalidArgument>(fewer, GetParam(), 0),
              HasSubstr("gave 0 components, expected 1"));
}

TEST_P(Errors, AGeneratorThatGivesAnotherNumberThanItSaidIsRefused) {
  const auto counting = [](int32_t count, int64_t said) {
    return Dataset::from_generator(
        kScalar,
        [count]() -> Generator {
          return [count, i = 0](Element* element) mutable {
            if (i == count) return false;
            *element = scalar_element(i++);
            return true;
          };
        },
        said);
  };
  const Dataset right = counting(42, 42);
  EXPECT_EQ(right.cardinality(), 42);
  EXPECT_EQ(right.repeat().epoch_size(), 42);
  EXPECT_EQ(right.take(10).cardinality(), 10);
  EXPECT_EQ(counting(5, Dataset::kInfinite).cardinality(), Dataset::kInfinite);
  EXPECT_EQ(elements(right, {.threads = GetParam()}), range(0, 42));
  EXPECT_THAT(error_in_batch<DataError>(counting(42, 50), GetParam(), 10),
              HasSubstr("pass 0 ended after 42 elements, but from_generator was told 50"));
  EXPECT_THAT(error_in_batch<DataError>(counting(50, 42), GetParam(), 10),
              HasSubstr("pass 0 goes on after 42 elements, but from_generator was told 42"));
  EXPECT_THAT(error_in_batch<DataError>(counting(42, Dataset::kInfinite), GetParam(), 10),
              HasSubstr("told that it has no end"));
  EXPECT_THROW(counting(5, -3), InvalidArgument);
}

TEST_P(Errors, ShortBatchesCannotBeBatchedAgain) {
  Pipeline pipeline(slow(numbers(5)).batch(2).batch(3), {.threads = GetParam()});
  Batch batch;
  expect_throws<InvalidArgument>([&] { pipeline.next(&batch); }, {"drop_remainder"});
}

TEST(Errors, OfSeveralInOneBatchTheFirstIsReported) {
  tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 9);
  const Dataset dataset = numbers(64).map(kScalar, [](const SampleContext&, const Element& e) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (value_of(e) >= 37) throw DataError("bad");
    return e;
  });
  Pipeline pipeline(dataset.batch(16), {.threads = 8});
  Batch batch;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(pipeline.next(&batch));
  ASSERT_TRUE(pipeline.statistics().threaded);
  expect_throws<DataError>([&] { pipeline.next(&batch); }, {"sample 37 "});
}

TEST(Arguments, OfEveryOperationAreChecked) {
  const Dataset d = numbers(3);
  expect_throws<InvalidArgument>([&] { d.batch(0); }, {"batch (data/pipeline_test.cc:", "at least 1, not 0"});
  expect_throws<InvalidArgument>([&] { d.shuffle(0); }, {"shuffle (", "at least 1"});
  expect_throws<InvalidArgument>([&] { d.repeat(0); }, {"repeat (", "at least 1"});
  expect_throws<InvalidArgument>([&] { d.repeat().repeat(); }, {"repeat (", "never ends"});
  expect_throws<InvalidArgument>([&] { d.repeat().cache(); }, {"cache (", "before repeat"});
  expect_throws<InvalidArgument>([&] { d.shard(3, 3); }, {"shard (", "[0, 3)"});
  expect_throws<InvalidArgument>([&] { d.shard(0, 0); }, {"shard (", "at least 1"});
  expect_throws<InvalidArgument>([&] { d.take(-1); }, {"take ("});
  expect_throws<InvalidArgument>([&] { d.skip(-1); }, {"skip ("});
  expect_throws<InvalidArgument>([&] { d.prefetch(-1); }, {"prefetch ("});
  expect_throws<InvalidArgument>([&] { d.map(std::function<Element(const Element&)>()); },
                                 {"map (", "empty"});
  expect_throws<InvalidArgument>([&] { d.filter(nullptr); }, {"filter (", "empty"});
  expect_throws<InvalidArgument>([&] { Dataset::zip({}); }, {"zip ("});
  expect_throws<InvalidArgument>([&] { Dataset::from_arrays({}); }, {"from_arrays ("});
  expect_throws<InvalidArgument>([&] { Dataset::from_arrays({Array()}); }, {"undefined"});
  expect_throws<InvalidArgument>([&] { Dataset::from_arrays({Array::scalar(1.0f)}); }, {"scalar"});
  expect_throws<InvalidArgument>(
      [&] {
        Dataset::from_arrays({Array(DType::kInt32, {3}), Array(DType::kInt32, {4})});
      },
      {"int32[3]", "int32[4]"});
  expect_throws<InvalidArgument>([&] { Dataset::from_source(nullptr); }, {"from_source ("});
  expect_throws<InvalidArgument>([&] { d.repeat(int64_t{1} << 62); }, {"63 bits"});
  expect_throws<InvalidArgument>([&] { Pipeline(d, {}); }, {"must be a batch", ".batch(size)"});
  expect_throws<InvalidArgument>([&] { Pipeline(d.batch(1), {.threads = -2}); }, {"threads"});
  expect_throws<InvalidArgument>([&] { Pipeline(d.batch(1), {.prefetch_batches = -1}); },
                                 {"prefetch_batches"});
}

TEST(Endless, SearchesEndWithAnError) {
  const auto none = [](const Element&) { return false; };
  Batch batch;
  expect_throws<FailedPrecondition>(
      [&] { Pipeline(numbers(3).filter(none).repeat().batch(2), {}).next(&batch); },
      {"repeat (", "no element at all"});
  expect_throws<FailedPrecondition>([&] { Pipeline(numbers(0).repeat().batch(2), {}).next(&batch); },
                                    {"repeat ("});
  expect_throws<FailedPrecondition>(
      [&] { Pipeline(numbers(3).repeat().filter(none).batch(2), {}).next(&batch); },
      {"filter (", "for ever"});
}

TEST(Stopping, MidFlightNeverHangs) {
  tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 9);
  for (int round = 0; round < 60; ++round) {
    Dataset dataset = slow(round % 2 ? numbers(300).repeat() : generated(300).shuffle(20).repeat());
    if (round % 3 == 0) dataset = dataset.filter([](const Element& e) { return value_of(e) % 2 == 0; });
    Pipeline pipeline(dataset.batch(3), {.threads = round % 4, .prefetch_batches = round % 5});
    Batch batch;
    for (int i = 0; i < round; ++i) ASSERT_TRUE(pipeline.next(&batch));
  }
}

TEST(Stopping, FromAnotherThreadEndsAWaitingConsumer) {
  const Dataset dataset = numbers(100).repeat().map(kScalar, [](const SampleContext&, const Element& e) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return e;
  });
  for (int threads : {0, 2}) {
    Pipeline pipeline(dataset.batch(1), {.threads = threads});
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      pipeline.stop();
    });
    Batch batch;
    int64_t count = 0;
    while (pipeline.next(&batch)) ++count;
    stopper.join();
    EXPECT_FALSE(pipeline.next(&batch));
    EXPECT_EQ(pipeline.statistics().batches, count);
  }
}

TEST(Stopping, EndsPassesThatGiveNothing) {
  Pipeline pipeline(generated(0).repeat(int64_t{1} << 62).batch(1), {.threads = 0});
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    pipeline.stop();
  });
  Batch batch;
  EXPECT_FALSE(pipeline.next(&batch));
  stopper.join();
}

TEST(Stopping, AdvancesWithoutWorkersOfOneTbb) {
  tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 1);
  EXPECT_EQ(run(slow(numbers(50)).batch(5), {.threads = 4}).size(), 10u);
}

TEST(Statistics, CountWhatWasDelivered) {
  Pipeline pipeline(slow(numbers(50)).batch(4), {.threads = 2});
  for (Batch batch; pipeline.next(&batch);) {
  }
  const PipelineStatistics statistics = pipeline.statistics();
  EXPECT_EQ(statistics.batches, 13);
  EXPECT_EQ(statistics.samples, 50);
  EXPECT_EQ(statistics.bytes, 200);
  EXPECT_GT(statistics.wait_seconds, 0);
  EXPECT_TRUE(statistics.threaded);
  EXPECT_EQ(statistics.in_flight_limit, 4);
}

}  // namespace
}  // namespace mox
