// build/bin/bench_growth [--json] [TABLE...]: how time and memory grow with what is asked for, at four sizes.
//
// A row is a process of its own, so that its peak of memory is its own. The exponent of a row is that of its
// processor time against the row before: 1 is in proportion to the size, 2 its square.
#include <fmt/format.h>
#include <moxing/moxing.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/files/large_files.h"
#include "bench/json_line.h"
#include "bench/output_to_error.h"
#include "moxing/engine/compile/compiled_model.h"
#include "runtime/base/seconds.h"
#include "runtime/base/team.h"

namespace {

using Clock = std::chrono::steady_clock;

// Time that a row measures, and what else it says of itself.
struct Row {
  double seconds = 0;
  double processor_seconds = 0;  // of all threads: what other programs on the machine change little
  double amount = 0;             // instructions, or mebibytes of a file
};

class Watch {
 public:
  Row row(double amount) const {
    return {mox::seconds_since(begin_), static_cast<double>(std::clock() - processor_begin_) / CLOCKS_PER_SEC,
            amount};
  }

 private:
  const Clock::time_point begin_ = Clock::now();
  const std::clock_t processor_begin_ = std::clock();
};

struct Table {
  std::string name, about, size_of, amount_of;
  std::array<int64_t, 4> sizes;
  std::function<Row(int64_t size)> measure;
};

// The graph of a model, compiled.
Row compiled(const mox::ModelFn& model, const std::vector<mox::TensorType>& inputs,
             mox::ModeKeys mode = mox::ModeKeys::TRAIN, mox::Precision precision = mox::Precision::kFloat32) {
  const mox::Team team(1);
  const mox::EnteredTeam entered(team);
  mox::VariableStore store(1);
  const Watch watch;
  mox::internal::ModelCompiler compiler(model, mode, store, team, {.rules = {.precision = precision}});
  const mox::internal::CompiledModel& made = compiler.for_signature(inputs);
  return watch.row(static_cast<double>(made.plan->statistics().instructions));
}

const std::vector<mox::TensorType> kFour{{mox::DType::kFloat32, {4, 4}}};

Row layers(int64_t size, mox::Precision precision) {
  return compiled(
      [size](const mox::Inputs& in, mox::ModeKeys) {
        mox::Tensor x = in[0];
        for (int64_t i = 0; i < size; ++i) x = mox::relu(mox::layers::dense(x, 4));
        return mox::ModelSpec{.loss = mox::reduce_mean(mox::square(x))};
      },
      kFour, mox::ModeKeys::TRAIN, precision);
}

Row convolutions(int64_t size) {
  return compiled(
      [size](const mox::Inputs& in, mox::ModeKeys mode) {
        mox::Tensor x = in[0];
        for (int64_t i = 0; i < size; ++i)
          x = mox::relu(
              mox::layers::batch_norm(mox::layers::conv2d(x, 16, {3, 3}, {.use_bias = false}), mode));
        return mox::ModelSpec{.loss = mox::reduce_mean(mox::square(x))};
      },
      {{mox::DType::kFloat32, {2, 16, 8, 8}}});
}

mox::ModelSpec model_with_values(const mox::Inputs& in, int64_t values) {
  mox::ModelSpec spec{.loss = mox::reduce_mean(mox::square(mox::layers::dense(in[0], 4)))};
  for (int64_t i = 0; i < values; ++i)
    spec.log_info.push_back({fmt::format("value_{}", i), spec.loss * static_cast<float>(i % 7)});
  return spec;
}

Row log_info(int64_t size, mox::ModeKeys mode) {
  return compiled([size](const mox::Inputs& in, mox::ModeKeys) { return model_with_values(in, size); }, kFour,
                  mode);
}

// Runs in one directory, each of which goes on where the one before ended, and writes each step's values to
// metrics.jsonl.
class Runs {
 public:
  explicit Runs(int64_t values) : values_(values) {
    const char* arguments[] = {"bench_growth", "--log_level=error", "--threads=1"};
    mox::init(std::size(arguments), arguments);
  }
  ~Runs() { std::filesystem::remove_all(log_dir_); }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  void train(int64_t until_step) const {
    const bench::OutputToError keep_clean;
    mox::run_or_throw(
        {.input_fn =
             [](mox::ModeKeys) {
               return mox::Dataset::from_arrays({mox::Array(mox::DType::kFloat32, {4, 4})}).repeat();
             },
         .model_fn = [this](const mox::Inputs& in, mox::ModeKeys) { return model_with_values(in, values_); },
         .optimizer_fn = mox::get_optimizer_fn("sgd", {.learning_rate = 0.1}),
         .batch_size = 4,
         .log_dir = log_dir_,
         .max_number_of_steps = until_step,
         .log_every_n_steps = 0,
         .save_summary_steps = 1,
         .save_model_secs = 0});
  }
  double mebibytes_of_metrics() const {
    return static_cast<double>(std::filesystem::file_size(log_dir_ / "metrics.jsonl")) / (1 << 20);
  }

 private:
  int64_t values_;
  std::filesystem::path log_dir_ =
      std::filesystem::temp_directory_path() / fmt::format("bench_growth_{}", ::getpid());
};

// Ten steps, each of which logs all values.
Row steps(int64_t size) {
  const Runs runs(size);
  const Watch watch;
  runs.train(10);
  return watch.row(10);
}

// One step of a run that goes on after so many.
Row restart(int64_t size) {
  const Runs runs(10);
  runs.train(size);
  const double mebibytes = runs.mebibytes_of_metrics();
  const Watch watch;
  runs.train(size + 1);
  return watch.row(mebibytes);
}

mox::Array numbers(int64_t count) { return mox::Array(mox::DType::kFloat32, {count}); }

Row first_batch(const mox::Dataset& dataset, const Watch& watch) {
  mox::Pipeline pipeline(dataset, {.threads = 1});
  mox::Batch batch;
  pipeline.next(&batch);
  return watch.row(0);
}

Row chain(int64_t size) {
  const Watch watch;
  mox::Dataset dataset = mox::Dataset::from_arrays({numbers(64)});
  for (int64_t i = 0; i < size; ++i) dataset = dataset.map([](const mox::Element& e) { return e; });
  return first_batch(dataset.batch(8), watch);
}

// Rows of 4 KiB that a filter keeps, shuffled within 64 MiB.
Row shuffle(int64_t size) {
  const Watch watch;
  const mox::Dataset rows = mox::Dataset::from_arrays({numbers(size)})
                                .map([](const mox::Element&) -> mox::Element { return {numbers(1024)}; })
                                .filter([](const mox::Element&) { return true; })
                                .shuffle(size)
                                .batch(8);
  mox::Pipeline pipeline(rows, {.threads = 1, .memory_budget_bytes = size_t{64} << 20});
  mox::Batch batch;
  pipeline.next(&batch);
  return watch.row(static_cast<double>(size) / 256);
}

// A file of about so many mebibytes that `write` fills, read; what is made of it is dropped with the process.
Row read(void (*write)(std::FILE*, int64_t mebibytes), int64_t mebibytes,
         const std::function<void(const std::string&)>& read_it) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("bench_growth_{}", ::getpid())).string();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return {};
  write(file, mebibytes);
  std::fclose(file);
  const double size = static_cast<double>(std::filesystem::file_size(path)) / (1 << 20);
  const Watch watch;
  read_it(path);
  const Row row = watch.row(size);
  std::filesystem::remove(path);
  return row;
}

Row npy(int64_t mebibytes) {
  return read(bench::write_npy, mebibytes, [mebibytes](const std::string& path) {
    mox::Pipeline pipeline(mox::data::npy({path}).shuffle(mebibytes * 256).batch(32), {.threads = 1});
    mox::Batch batch;
    pipeline.next(&batch);
  });
}

Row npz(int64_t mebibytes, bool deflates) {
  return read(deflates ? bench::write_deflated_npz : bench::write_stored_npz, mebibytes,
              [](const std::string& path) { mox::data::npz(path, {"x"}); });
}

Row csv(int64_t mebibytes) {
  return read(bench::write_csv, mebibytes, [](const std::string& path) { mox::data::csv(path, {}, 4); });
}

Row table(int64_t mebibytes) {
  return read(bench::write_table, mebibytes,
              [](const std::string& path) { mox::data::read_csv_table(path); });
}

const std::vector<Table> kTables = {
    {"layers",
     "dense layers without a name, built and compiled",
     "layers",
     "instructions",
     {1000, 4000, 16000, 32000},
     [](int64_t size) { return layers(size, mox::Precision::kFloat32); }},
    {"bfloat16",
     "the same in bfloat16",
     "layers",
     "instructions",
     {1000, 4000, 16000, 32000},
     [](int64_t size) { return layers(size, mox::Precision::kBFloat16); }},
    {"convolutions",
     "convolutions with batch_norm and relu, built and compiled",
     "layers",
     "instructions",
     {100, 300, 1000, 3000},
     convolutions},
    {"log_info",
     "values of log_info, built and compiled",
     "values",
     "instructions",
     {1000, 3000, 10000, 30000},
     [](int64_t size) { return log_info(size, mox::ModeKeys::TRAIN); }},
    {"evaluated",
     "the same for an evaluation",
     "values",
     "instructions",
     {1000, 3000, 10000, 30000},
     [](int64_t size) { return log_info(size, mox::ModeKeys::EVAL); }},
    {"steps",
     "a run of ten steps with values of log_info, all of them logged in each",
     "values",
     "steps",
     {1000, 3000, 10000, 30000},
     steps},
    {"restart",
     "a run with ten values that goes on, up to the end of one step",
     "steps before",
     "MiB of metrics",
     {10000, 30000, 100000, 300000},
     restart},
    {"chain",
     "operations of a data set, up to the first batch",
     "operations",
     "",
     {1000, 3000, 10000, 30000},
     chain},
    {"shuffle",
     "rows of 4 KiB behind a filter, shuffled with a budget of 64 MiB",
     "rows",
     "MiB of rows",
     {10000, 30000, 100000, 300000},
     shuffle},
    {"npy",
     "a .npy file, shuffled, up to the first batch of 32 rows",
     "MiB",
     "MiB",
     {16, 64, 256, 1024},
     npy},
    {"npz",
     "a stored array of an .npz file, read",
     "MiB",
     "MiB",
     {16, 64, 256, 1024},
     [](int64_t size) { return npz(size, false); }},
    {"deflated",
     "a deflated array of an .npz file, read",
     "MiB",
     "MiB of file",
     {16, 64, 256, 1024},
     [](int64_t size) { return npz(size, true); }},
    {"csv", "a CSV file of numbers with labels, read", "MiB", "MiB", {16, 64, 256, 1024}, csv},
    {"table", "a CSV table of numbers, words and notes, read", "MiB", "MiB", {16, 64, 128, 256}, table},
};

struct Measured {
  Row row;
  double mebibytes = 0;
};

Measured in_own_process(const Table& table, int64_t size) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    const Row row = table.measure(size);
    const bool is_written = ::write(ends[1], &row, sizeof row) == sizeof row;
    ::_exit(is_written ? 0 : 1);
  }
  ::close(ends[1]);
  Measured measured;
  const bool is_there =
      child > 0 && ::read(ends[0], &measured.row, sizeof measured.row) == sizeof measured.row;
  ::close(ends[0]);
  rusage usage{};
  int status = 0;
  if (child > 0) ::wait4(child, &status, 0, &usage);
  if (!is_there || status != 0) {
    fmt::print(stderr, "bench_growth: {} of {} did not end well\n", table.name, size);
    std::exit(1);
  }
  measured.mebibytes = static_cast<double>(usage.ru_maxrss) / 1024;
  return measured;
}

void print(const Table& table, bool json) {
  if (!json)
    fmt::print("\n{}: {}\n{:>12} {:>14} {:>10} {:>12} {:>10} {:>9}\n", table.name, table.about, table.size_of,
               table.amount_of, "s", "processor s", "peak MiB", "exponent");
  double before = 0;
  int64_t size_before = 1;
  for (const int64_t size : table.sizes) {
    const auto [row, mebibytes] = in_own_process(table, size);
    if (json) {
      const std::string name = fmt::format("{}_{}", table.name, size);
      bench::print_json_line({"growth", name, "time", row.seconds, "s"});
      bench::print_json_line({"growth", name, "processor_time", row.processor_seconds, "s"});
      bench::print_json_line({"growth", name, "peak_memory", mebibytes, "MiB"});
    } else {
      const double exponent = std::log(row.processor_seconds / before) /
                              std::log(static_cast<double>(size) / static_cast<double>(size_before));
      fmt::print("{:>12} {:>14} {:>10.3f} {:>12.3f} {:>10.0f} {:>9}\n", size,
                 table.amount_of.empty() ? "" : fmt::format("{:.0f}", row.amount), row.seconds,
                 row.processor_seconds, mebibytes, before > 0 ? fmt::format("{:.2f}", exponent) : "");
    }
    before = row.processor_seconds;
    size_before = size;
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  std::vector<std::string> wanted;
  for (const std::string& argument : std::vector<std::string>(argv + 1, argv + argc)) {
    if (argument == "--json")
      json = true;
    else
      wanted.push_back(argument);
  }
  for (const std::string& name : wanted)
    if (std::ranges::find(kTables, name, &Table::name) == kTables.end()) {
      fmt::print(stderr, "usage: bench_growth [--json] [TABLE...]; there is no table '{}', but\n", name);
      for (const Table& table : kTables) fmt::print(stderr, "  {:<9} {}\n", table.name, table.about);
      return 2;
    }
  for (const Table& table : kTables)
    if (wanted.empty() || std::ranges::find(wanted, table.name) != wanted.end()) print(table, json);
}
