// The number of threads that a pipeline chooses for itself.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/base/log.h"
#include "runtime/data/pipeline.h"
#include "tests/runtime/data/pipeline_testing.h"

namespace mox {
namespace {

using namespace data_testing;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// Long enough for several numbers of threads to be tried.
TEST(AutomaticThreads, ChangeNeitherOrderNorPositions) {
  const Dataset dataset =
      numbers(37)
          .shuffle(37)
          .map(kScalar,
               [](const SampleContext& context, const Element& e) {
                 std::this_thread::sleep_for(std::chrono::microseconds(500));
                 return scalar_element(value_of(e) + static_cast<int32_t>(context.random().below(0, 1000)));
               })
          .repeat(100)
          .batch(5);
  PipelineOptions automatic{.threads = PipelineOptions::kAutomatic, .most_threads = 3};
  Pipeline expected(dataset, {.threads = 2}), pipeline(dataset, automatic);
  Batch batch, other;
  for (int i = 0; expected.next(&other); ++i) {
    ASSERT_TRUE(pipeline.next(&batch));
    ASSERT_EQ(rows_of(batch), rows_of(other)) << i;
    ASSERT_EQ(pipeline.cursor(), expected.cursor()) << i;
    const PipelineStatistics statistics = pipeline.statistics();
    ASSERT_GE(statistics.threads, 1);
    ASSERT_LE(statistics.threads, 3);
    ASSERT_LE(statistics.in_flight_limit, 2 + statistics.threads);
  }
  EXPECT_FALSE(pipeline.next(&batch));
}

TEST(AutomaticThreads, StayWithinTheMemory) {
  Pipeline pipeline(slow(numbers(2000)).batch(1), {.threads = PipelineOptions::kAutomatic,
                                                   .most_threads = 8,
                                                   .prefetch_batches = 9,
                                                   .memory_budget_bytes = 2 * sizeof(int32_t)});
  for (Batch batch; pipeline.next(&batch);) {
    ASSERT_EQ(pipeline.statistics().threads, 1);
    ASSERT_LE(pipeline.statistics().in_flight_limit, 2);
  }
}

TEST(AutomaticThreads, CanBeStoppedFromAnotherThreadAtAnyTime) {
  const Dataset dataset = slow(numbers(100)).repeat().batch(20);
  for (int i = 0; i < 20; ++i) {
    Pipeline pipeline(dataset, {.threads = PipelineOptions::kAutomatic, .most_threads = 4});
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20 * (i % 5)));
      pipeline.stop();
    });
    for (Batch batch; pipeline.next(&batch);) {
    }
    stopper.join();
  }
}

// Lines of the log, counted while they are caught.
class CaughtLog : public LogLineObserver {
 public:
  CaughtLog() {
    testing::internal::CaptureStderr();
    set_log_line_observer(this);
  }
  ~CaughtLog() override { set_log_line_observer(nullptr); }
  void before_log_line() override {}
  void after_log_line() override { ++lines_; }
  int lines() const { return lines_; }
  static std::string text() { return testing::internal::GetCapturedStderr(); }

 private:
  std::atomic<int> lines_{0};
};

Dataset sleeping() {
  return numbers(100).repeat().batch(5).map({{DType::kInt32, Shape{5}}},
                                            [](const SampleContext&, const Element& e) {
                                              std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                              return e;
                                            });
}

TEST(AutomaticThreads, SayWhatWasChosenAndWhy) {
  CaughtLog log;
  Pipeline pipeline(sleeping(), {.threads = PipelineOptions::kAutomatic, .most_threads = 2});
  for (Batch batch; log.lines() == 0;) ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_THAT(log.text(), AllOf(HasSubstr("data pipeline: "), HasSubstr(" of at most 2 threads"),
                                HasSubstr("a batch with 1")));
}

TEST(AutomaticThreads, AreNotChosenWhereTheirNumberIsGiven) {
  CaughtLog log;
  Pipeline pipeline(sleeping(), {.threads = 2, .most_threads = 2});
  Batch batch;
  for (int i = 0; i < 1500; ++i) {
    ASSERT_TRUE(pipeline.next(&batch));
    ASSERT_EQ(pipeline.statistics().threads, 2);
  }
  EXPECT_THAT(log.text(), IsEmpty());
}

}  // namespace
}  // namespace mox
