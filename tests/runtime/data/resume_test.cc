// A pipeline resumed from any position, on any number of threads, goes on with the same bits.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "runtime/base/error.h"
#include "tests/runtime/data/pipeline_testing.h"

namespace mox {
namespace {

using namespace data_testing;
using testing::HasSubstr;

struct ResumedCase {
  const char* name;
  std::function<Dataset()> make;
};
void PrintTo(const ResumedCase& value, std::ostream* out) { *out << value.name; }

Element slow_random(const SampleContext& context, const Element& e) {
  work();
  return scalar_element(value_of(e) * 1000 + static_cast<int32_t>(context.random().below(0, 1000)));
}
bool not_multiple_of_three(const Element& e) { return value_of(e) % 3 != 0; }

Dataset augmented(const Dataset& dataset) { return dataset.map(kScalar, slow_random); }

std::vector<ResumedCase> resumed_cases() {
  return {
      {"Plain", [] { return augmented(numbers(11)).batch(3); }},
      {"FullShuffle", [] { return augmented(numbers(11).shuffle(11)).repeat(3).batch(4); }},
      {"RepeatFirst", [] { return augmented(numbers(7).repeat(4).shuffle(28)).batch(3); }},
      {"WindowShuffle", [] { return augmented(numbers(13).shuffle(4).repeat(3)).batch(4); }},
      {"WindowOverEndless", [] { return augmented(numbers(5).repeat().shuffle(4).take(33)).batch(4); }},
      {"BatchesPerPass", [] { return augmented(numbers(10)).batch(4).repeat(3); }},
      {"DropRemainder", [] { return augmented(numbers(10).shuffle(10)).batch(4, true).repeat(3); }},
      {"Filter", [] { return augmented(numbers(40).filter(not_multiple_of_three)).batch(4); }},
      {"FilterLong",
       [] { return augmented(numbers(90).shuffle(90).filter(not_multiple_of_three)).repeat(2).batch(9); }},
      {"FilterOfRandom",
       [] { return augmented(numbers(30)).filter(not_multiple_of_three).repeat(2).batch(3); }},
      {"FilterThenShuffle",
       [] {
         return numbers(80)
             .filter(not_multiple_of_three)
             .shuffle(9)
             .map(kScalar, slow_random)
             .repeat(2)
             .batch(7);
       }},
      {"TwoFilters",
       [] {
         return numbers(150)
             .filter(not_multiple_of_three)
             .filter([](const Element& e) { return value_of(e) % 5 != 0; })
             .map(kScalar, slow_random)
             .batch(6);
       }},
      {"Generator", [] { return augmented(generated(11)).repeat(3).batch(4); }},
      {"GeneratorShuffle", [] { return augmented(generated(11).shuffle(5)).repeat(2).batch(3); }},
      {"GeneratorFilter", [] { return augmented(generated(100).filter(not_multiple_of_three)).batch(10); }},
      {"Shard", [] { return augmented(numbers(20).shuffle_once(20, 1).shard(1, 3)).repeat(3).batch(4); }},
      {"ShardOfStream", [] { return augmented(generated(20).shard(1, 3)).repeat(3).batch(4); }},
      {"Slices", [] { return augmented(numbers(20).skip(3).take(11)).repeat(2).batch(4); }},
      {"SlicesOfStream", [] { return augmented(generated(20).skip(3).take(11)).repeat(2).batch(4); }},
      {"Zip",
       [] {
         return augmented(Dataset::zip({numbers(9).shuffle(9), numbers(12).shuffle(3)})).repeat(2).batch(4);
       }},
      {"ZipOfStreams",
       [] {
         return augmented(Dataset::zip({generated(9), numbers(4).repeat()})).repeat(2).batch(4);
       }},
      {"Interleave",
       [] {
         return augmented(
                    Dataset::interleave({numbers(7).shuffle(7), numbers(0), numbers(3), numbers(9)}, 2, 2))
             .repeat(3)
             .batch(4);
       }},
      {"InterleaveOfStreams",
       [] {
         return augmented(
                    Dataset::interleave({generated(6), numbers(40).filter(not_multiple_of_three)}).shuffle(5))
             .repeat(2)
             .batch(5);
       }},
      {"Cache", [] { return augmented(numbers(11)).cache().shuffle(11).repeat(3).batch(4); }},
      {"CacheOfStream", [] { return augmented(generated(11).shuffle(3)).cache().repeat(3).batch(4); }},
      {"BatchOfBatches", [] { return augmented(numbers(24).shuffle(24)).batch(2, true).repeat(2).batch(5); }},
      {"ShuffledBatches", [] { return augmented(numbers(25)).batch(3).shuffle(99).repeat(2); }},
      {"NestedRepeats",
       [] { return augmented(numbers(5).shuffle_once(5, 1).repeat(2)).take(8).repeat(3).batch(3); }},
      {"MapOverBatches",
       [] {
         return numbers(11)
             .shuffle(11)
             .batch(3)
             .map([](const SampleContext& context, const Element& e) {
               work();
               Array sum = e[0].clone();
               for (auto& v : sum.values<int32_t>())
                 v += static_cast<int32_t>(context.random().below(0, 1 << 20));
               return Element{sum};
             })
             .repeat(3);
       }},
  };
}

class Resume : public testing::TestWithParam<ResumedCase> {
 protected:
  // oneTBB gives no more threads than cores unless told to.
  tbb::global_control threads_{tbb::global_control::max_allowed_parallelism, 9};
};
INSTANTIATE_TEST_SUITE_P(Pipelines, Resume, testing::ValuesIn(resumed_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Resume, GivesTheSameOnAnyNumberOfThreads) {
  const Batches expected = run(GetParam().make(), {.seed = 7, .threads = 0});
  ASSERT_GT(expected.size(), 2u);
  for (int threads : {1, 2, 8}) {
    EXPECT_EQ(run(GetParam().make(), {.seed = 7, .threads = threads}), expected) << threads << " threads";
    EXPECT_EQ(run(GetParam().make(), {.seed = 7, .threads = threads, .prefetch_batches = 0}), expected);
  }
  EXPECT_NE(run(GetParam().make(), {.seed = 8, .threads = 2}), expected);
}

TEST_P(Resume, GoesOnFromEveryPosition) {
  const Batches expected = run(GetParam().make(), {.seed = 7, .threads = 0});
  Pipeline threaded(GetParam().make(), {.seed = 7, .threads = 2, .prefetch_batches = 3});
  for (size_t position = 0; position <= expected.size(); ++position) {
    const std::string cursor = threaded.cursor();
    const Batches rest(expected.begin() + static_cast<ptrdiff_t>(position), expected.end());
    EXPECT_EQ(run(GetParam().make(), {.seed = 7, .threads = 0}, cursor), rest) << "from " << position;
    EXPECT_EQ(run(GetParam().make(), {.seed = 7, .threads = 2}, cursor, 7),
              Batches(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(std::min<size_t>(7, rest.size()))));
    // A cursor of a resumed pipeline that has not moved is the same position.
    EXPECT_EQ(Pipeline(GetParam().make(), {.seed = 7}, cursor).cursor(), cursor);
    Batch batch;
    if (position < expected.size()) {
      ASSERT_TRUE(threaded.next(&batch));
    }
  }
}

TEST(Cursor, ReadsNothingThatCameBefore) {
  auto reads = std::make_shared<std::atomic<int>>(0);
  class Counting : public RandomAccessSource {
   public:
    explicit Counting(std::shared_ptr<std::atomic<int>> reads) : reads_(std::move(reads)) {}
    int64_t size() const override { return int64_t{1} << 40; }
    const std::vector<TensorType>& signature() const override { return kScalar; }
    void read(int64_t index, const SampleContext&, std::span<std::byte* const> out) const override {
      ++*reads_;
      *reinterpret_cast<int32_t*>(out[0]) = static_cast<int32_t>(index);
    }
    std::string describe() const override { return "counting"; }
    uint32_t content_checksum(int64_t) const override {
      return 0;
    }  // of a few samples, which are not to count

   private:
    std::shared_ptr<std::atomic<int>> reads_;
  };
  const Dataset dataset = Dataset::from_source(std::make_shared<Counting>(reads))
                              .shuffle_once(int64_t{1} << 40, 1)
                              .shard(3, 8)
                              .skip(1'000'000'000)
                              .repeat()
                              .batch(10);
  const Batches all = run(dataset, {.threads = 0}, {}, 5);
  Pipeline pipeline(dataset, {.threads = 0});
  Batch batch;
  for (int i = 0; i < 3; ++i) pipeline.next(&batch);
  *reads = 0;
  EXPECT_EQ(run(dataset, {.threads = 0}, pipeline.cursor(), 2), Batches(all.begin() + 3, all.end()));
  EXPECT_EQ(*reads, 20);
}

// Of a narrower type a filter looks further ahead, and so did older versions.
TEST(Cursor, OfALongerLookAheadIsThePositionOfItsElement) {
  const auto filtered = [](int64_t extent) {
    return numbers(90)
        .map([extent](const Element& e) -> Element {
          Array row = Array::uninitialized({DType::kInt32, {extent}});
          row.values<int32_t>()[0] = value_of(e);
          return {row};
        })
        .filter(not_multiple_of_three)
        .batch(1);
  };
  Pipeline narrow(filtered(1), {.threads = 0});
  for (int32_t value = 1; value < 80; ++value) {
    if (value % 3 == 0) continue;
    Batch batch;
    ASSERT_TRUE(narrow.next(&batch));
    ASSERT_EQ(value_of(batch.components), value);
    Pipeline wide(filtered(1 << 21), {.threads = 0}, narrow.cursor());  // 8 of 8 MiB at a time
    ASSERT_TRUE(wide.next(&batch));
    EXPECT_EQ(value_of(batch.components), value % 3 == 1 ? value + 1 : value + 2);
  }
}

template <typename Type, typename Function>
void expect_cursor_refused(Function&& function, const std::string& text) {
  try {
    function();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Type& error) {
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

TEST(Cursor, OfAnotherDataSetOrSeedIsRefusedWithTheDifference) {
  const std::string cursor = Pipeline(numbers(9).shuffle(9).batch(2), {.seed = 1}).cursor();
  expect_cursor_refused<FailedPrecondition>(
      [&] { Pipeline(numbers(9).shuffle(9).batch(2), {.seed = 2}, cursor); }, "seed 1");
  expect_cursor_refused<FailedPrecondition>(
      [&] { Pipeline(numbers(8).shuffle(9).batch(2), {.seed = 1}, cursor); },
      "'from_arrays(9) x {int32[]}' and is now 'from_arrays(8) x {int32[]}'");
  expect_cursor_refused<FailedPrecondition>(
      [&] { Pipeline(numbers(9).shuffle(9).batch(3), {.seed = 1}, cursor); },
      "was 'batch(2)' and is now 'batch(3)'");
  expect_cursor_refused<FailedPrecondition>(
      [&] { Pipeline(numbers(9).shuffle(9).repeat().batch(2), {.seed = 1}, cursor); }, "'repeat()'");
}

TEST(Cursor, OfAnyDamageIsRefused) {
  const Dataset dataset = numbers(9).shuffle(4).batch(2);
  Pipeline pipeline(dataset, {});
  Batch batch;
  pipeline.next(&batch);
  const std::string cursor = pipeline.cursor();
  for (size_t length = 1; length < cursor.size(); ++length)
    EXPECT_THROW(Pipeline(dataset, {}, cursor.substr(0, length)), DataError) << length;
  for (size_t at = 0; at < cursor.size(); ++at) {
    std::string damaged = cursor;
    damaged[at] = damaged[at] == '7' ? '8' : '7';
    // Damage to the description of the data set shows as a difference, all other as damage.
    EXPECT_THROW(Pipeline(dataset, {}, damaged), Error) << damaged;
  }
}

}  // namespace
}  // namespace mox
