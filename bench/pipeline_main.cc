// build/bin/bench_pipeline --data_url=DIRECTORY [--batch_size=N] [--seconds=S] [--json]
//
// Batches a second that the data pipeline delivers to a consumer that does nothing else, on Fashion-MNIST:
//   convert          shuffled uint8 images, made float32 on the way (what mox::data::mnist gives)
//   gather           shuffled float32 images that are in memory
//   views            float32 images in their order: no copy is made
//   npy              as gather, from .npy files whose rows are kept in memory
//   npy_read         the same, where images do not fit there and are read each time
// each with 0, 1 and 2 threads beside the consumer's.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/json_line.h"
#include "moxing/moxing.h"
#include "runtime/base/seconds.h"
#include "runtime/data/pipeline.h"
#include "runtime/job/job.h"

namespace {

struct Case {
  std::string name;
  mox::Dataset samples;
};

// All images and labels of `samples` as arrays.
std::vector<mox::Array> in_memory(const mox::Dataset& samples) {
  mox::Pipeline pipeline(samples.batch(samples.epoch_size()), {.threads = 0});
  mox::Batch all;
  if (!pipeline.next(&all)) throw mox::DataError("the data set is empty");
  return {all.components[0].clone(), all.components[1].clone()};
}

// Files in the system's folder for such, as long as this object lives.
class NpyFiles {
 public:
  explicit NpyFiles(const std::vector<mox::Array>& arrays) {
    for (const mox::Array& array : arrays) {
      paths_.push_back((std::filesystem::temp_directory_path() /
                        fmt::format("bench_pipeline_{}_{}.npy", ::getpid(), paths_.size()))
                           .string());
      std::ofstream file(paths_.back(), std::ios::binary);
      file << mox::data::make_npy_header(array.type());
      file.write(reinterpret_cast<const char*>(array.data()), static_cast<std::streamsize>(array.bytes()));
    }
  }
  ~NpyFiles() {
    for (const std::string& path : paths_) std::filesystem::remove(path);
  }
  NpyFiles(const NpyFiles&) = delete;
  NpyFiles& operator=(const NpyFiles&) = delete;

  // Their rows, of which so many bytes are kept.
  mox::Dataset rows(size_t kept_bytes) const {
    const auto before = mox::data::npy_memory();
    mox::data::set_npy_memory(std::make_shared<mox::MemoryBudget>(kept_bytes));
    mox::Dataset dataset = mox::data::npy(paths_);
    mox::data::set_npy_memory(before);
    return dataset;
  }

 private:
  std::vector<std::string> paths_;
};

double batches_per_second(const mox::Dataset& samples, int64_t batch_size, int threads, double seconds) {
  using Clock = std::chrono::steady_clock;
  mox::Pipeline pipeline(samples.batch(batch_size), {.seed = 1, .threads = threads});
  mox::Batch batch;
  const auto take = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      if (!pipeline.next(&batch)) throw mox::FailedPrecondition("the data of this benchmark does not end");
  };
  constexpr int64_t kChunk = 100;
  take(kChunk);
  const auto start = Clock::now();
  for (int64_t done = kChunk;; done += kChunk) {
    take(kChunk);
    const double elapsed = mox::seconds_since(start);
    if (elapsed >= seconds) return static_cast<double>(done) / elapsed;
  }
}

void run() {
  const mox::Dataset images = mox::data::mnist(mox::flag("data_url"), "train");
  const std::vector<mox::Array> all = in_memory(images);
  const mox::Dataset arrays = mox::Dataset::from_arrays(all);
  const NpyFiles files(all);
  const std::vector<Case> cases = {{"convert", images.shuffle(60000).repeat()},
                                   {"gather", arrays.shuffle(60000).repeat()},
                                   {"views", arrays.repeat()},
                                   {"npy", files.rows(SIZE_MAX).shuffle(60000).repeat()},
                                   {"npy_read", files.rows(size_t{1} << 20).shuffle(60000).repeat()}};
  const auto batch_size = mox::get_flag<int64_t>("batch_size");
  for (const Case& of : cases)
    for (const int threads : {0, 1, 2}) {
      const double rate =
          batches_per_second(of.samples, batch_size, threads, mox::get_flag<double>("seconds"));
      const std::string name = fmt::format("{}_batch_{}_threads_{}", of.name, batch_size, threads);
      if (mox::get_flag<bool>("json")) {
        bench::print_json_line({.bench = "pipeline",
                                .name = name,
                                .metric = "batches_per_second",
                                .value = rate,
                                .unit = "batches/s"});
      } else {
        fmt::print("{:<8} {} threads beside the consumer: {:>9.0f} batches/s of {}, {:>9.0f} images/s\n",
                   of.name, threads, rate, batch_size, rate * static_cast<double>(batch_size));
      }
    }
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("seconds", 1.0, "Time of each measurement, at least.");
  mox::define_flag("json", false, "Print one JSON object a line.");
  mox::init(argc, argv);
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return mox::internal::exit_status_of(error);
  }
}
