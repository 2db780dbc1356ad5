// A program with one fault of each kind that the sanitizer builds must find; the argument chooses.
#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/data/pipeline.h"

namespace {

// Two threads of the pipeline increment one number. The first to come waits for the second, with relaxed
// atomics, which order nothing. The pipeline's own threads, that is: a first batch is made by the caller,
// slowly, so that the pipeline finds it worth its threads. Few samples: the sanitizer must remember the first
// access at the second.
void race_in_map() {
  std::atomic<int> arrived = 0;
  int64_t count = 0;
  const auto caller = std::this_thread::get_id();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto unsafe_count = [&](const mox::Element& element) {
    if (std::this_thread::get_id() == caller) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return element;
    }
    arrived.fetch_add(1, std::memory_order_relaxed);
    while (arrived.load(std::memory_order_relaxed) < 2 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    ++count;
    return element;
  };
  const mox::Array samples(mox::DType::kFloat32, {160, 4});
  mox::Pipeline pipeline(
      mox::Dataset::from_arrays({samples})
          .map({samples.rows(0, 1).reshaped({4}).type()},
               [&](const mox::SampleContext&, const mox::Element& element) { return unsafe_count(element); })
          .batch(16),
      {.threads = 2});
  mox::Batch batch;
  while (pipeline.next(&batch)) {
  }
  std::cout << count << "\n";
}

void overflow(int elements) {
  const std::vector<int> values(static_cast<size_t>(elements));
  std::cout << values.data()[elements] << "\n";
}

void leak() { std::cout << *std::make_unique<int>(7).release() << "\n"; }

void undefined(int value) { std::cout << value + 0x7fffffff << "\n"; }

}  // namespace

int main(int argc, char** argv) {
  const std::string_view fault = argc == 2 ? argv[1] : "";
  if (fault == "race_in_map") {
    race_in_map();
  } else if (fault == "overflow") {
    overflow(argc);
  } else if (fault == "leak") {
    leak();
  } else if (fault == "undefined") {
    undefined(argc);
  } else {
    std::cerr << "usage: planted_faults race_in_map|overflow|leak|undefined\n";
    return 2;
  }
  return 0;
}
