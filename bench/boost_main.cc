// build/bin/bench_boost [--json] [--vectors=60] [--columns=25000000] [--pair_columns=5000000]
// [--components=32] [--turns=3]
//                       [--directory=DIR] [--python=python3]
//
// Dimension-reduced training, its two costs: the basis of so many snapshots of so many weights (time, and
// memory beside the result), beside NumPy's SVD of smaller ones in turns; and what a step of stage 2 takes
// beside its passes through the network, beside the time to read the basis twice. Snapshots are written under
// DIR (the system's directory of temporary files), 4 bytes a weight, and deleted in the end.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "bench/json_line.h"
#include "bench/peak.h"
#include "moxing/boost/dim_reduce.h"
#include "moxing/boost/principal_components.h"
#include "moxing/moxing.h"
#include "runtime/base/random.h"
#include "runtime/base/resource_limits.h"
#include "runtime/base/seconds.h"
#include "runtime/base/team.h"
#include "runtime/job/job.h"

namespace {

using Clock = std::chrono::steady_clock;
double seconds_of(const auto& work) {
  const auto begin = Clock::now();
  work();
  return mox::seconds_since(begin);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Removed at the end.
struct Directory {
  explicit Directory(std::string where) : path(std::move(where)) {
    std::filesystem::create_directories(path);
  }
  ~Directory() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
  std::string path;
};

// A walk whose steps become shorter: what training leaves behind.
void write_snapshots(const std::string& directory, int64_t vectors, int64_t columns) {
  mox::Array weights(mox::DType::kFloat32, {columns});
  const std::span<float> values = weights.values<float>();
  const mox::Team team(mox::available_cores());
  for (int64_t n = 0; n < vectors; ++n) {
    const float scale = 0.02f / (1 + 0.1f * static_cast<float>(n));
    team.parallel_for(columns, 1 << 16, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        const uint64_t bits = mox::mix_hash(static_cast<uint64_t>(n), static_cast<uint64_t>(j));
        values[j] += scale * (static_cast<float>(bits >> 40) * 0x1p-23f - 1);
      }
    });
    mox::boost::write_snapshot(directory, n, std::vector<mox::NamedArray>{{"weights", weights}});
  }
}

// The largest resident size since `reset_peak`.
int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) << 10;
  return 0;
}
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

mox::boost::PrincipalComponents basis_of(const std::string& directory, int64_t components) {
  mox::Communicator alone;
  const mox::Team team(mox::available_cores());
  const mox::boost::Workers workers = mox::boost::workers_of(team);
  const mox::boost::SnapshotSet set(directory, {}, alone, workers);
  return mox::boost::principal_components(set, components, alone, workers);
}

double seconds_of_numpy(const std::string& python, const std::string& directory, int64_t components) {
  const std::string script = std::filesystem::path(__FILE__).parent_path().string() + "/boost_numpy.py";
  const std::string command = fmt::format("{} {} {} {}", python, script, directory, components);
  std::FILE* output = ::popen(command.c_str(), "r");
  double seconds = 0;
  const bool read = output && std::fscanf(output, "%lf", &seconds) == 1;
  if (!output || ::pclose(output) != 0 || !read)
    throw mox::FailedPrecondition(fmt::format("'{}' failed: --python names a Python with NumPy", command));
  return seconds;
}

class Report {
 public:
  explicit Report(bool json) : json_(json) {}
  void add(bench::Measurement measurement) const {
    measurement.bench = "boost";
    if (json_) return bench::print_json_line(measurement);
    fmt::print("{:24} {:24} {:10.3f} {}{}\n", measurement.name, measurement.metric, measurement.value,
               measurement.unit,
               measurement.peer ? fmt::format("   {}: {:.3f}, ratio {:.2f}", *measurement.peer,
                                              *measurement.peer_value, *measurement.ratio)
                                : "");
    std::fflush(stdout);
  }

 private:
  bool json_;
};

void measure_step(const mox::boost::Basis& basis, int64_t turns, const Report& report) {
  const mox::Team team(mox::available_cores());
  mox::Communicator alone;
  const size_t bytes = basis.bytes();
  const auto columns = static_cast<size_t>(basis.chunks().columns());
  mox::boost::DimReduce method(basis, {}, alone, mox::boost::workers_of(team));
  std::vector<float> weights(columns, 0.1f), gradient(columns);
  for (size_t i = 0; i < columns; ++i)
    gradient[i] = 1e-3f * static_cast<float>(static_cast<int64_t>(i % 7) - 3);
  std::vector<double> ratios, seconds;
  for (int64_t turn = 0; turn < turns + 1; ++turn) {
    const double step = seconds_of([&] {
      double loss = 1;
      method.step(mox::boost::FlatArrays({gradient}), 1, loss, mox::boost::FlatArrays({weights}),
                  [&] { return loss = loss - 1; });
    });
    const double twice = 2 * static_cast<double>(bytes) / bench::measure_memory_bandwidth(team.size(), 3);
    if (turn == 0) continue;  // memory that is touched for the first time
    seconds.push_back(step);
    ratios.push_back(step / twice);
  }
  const double ratio = median(ratios), step = median(seconds);
  report.add({.bench = {},
              .name = fmt::format("step_{}x{}", basis.components(), columns),
              .metric = "seconds_beside_the_network",
              .value = step,
              .unit = "s",
              .peer = "reading the basis twice at the triad's bandwidth",
              .peer_value = step / ratio,
              .ratio = ratio});
}

int measure() {
  const bool json = mox::get_flag<bool>("json");
  const Report report(json);
  const int64_t vectors = mox::get_flag<int64_t>("vectors"),
                components = mox::get_flag<int64_t>("components"), turns = mox::get_flag<int64_t>("turns");
  const std::string temporary = mox::flag("directory");
  const std::string top = fmt::format(
      "{}/moxing_bench_boost_{}",
      temporary.empty() ? std::filesystem::temp_directory_path().string() : temporary, ::getpid());
  if (const int64_t columns = mox::get_flag<int64_t>("pair_columns"); columns > 0) {
    const Directory directory(top + "/pair");
    write_snapshots(directory.path, vectors, columns);
    std::vector<double> ours, theirs, ratios;
    for (int64_t turn = 0; turn < turns; ++turn) {
      ours.push_back(seconds_of([&] { basis_of(directory.path, components); }));
      theirs.push_back(seconds_of_numpy(mox::flag("python"), directory.path, components));
      ratios.push_back(theirs.back() / ours.back());
    }
    report.add({.bench = {},
                .name = fmt::format("basis_{}x{}", vectors, columns),
                .metric = "seconds",
                .value = median(ours),
                .unit = "s",
                .peer = "numpy.linalg.svd",
                .peer_value = median(theirs),
                .ratio = median(ratios)});
  }
  const int64_t columns = mox::get_flag<int64_t>("columns");
  const Directory directory(top + "/large");
  write_snapshots(directory.path, vectors, columns);
  reset_peak();
  const int64_t before = peak_bytes();
  std::vector<double> seconds, processor_seconds;
  std::optional<mox::boost::PrincipalComponents> found;
  for (int64_t turn = 0; turn < turns; ++turn) {
    found.reset();
    const std::clock_t begin = std::clock();
    seconds.push_back(seconds_of([&] { found = basis_of(directory.path, components); }));
    processor_seconds.push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  const std::string name = fmt::format("basis_{}x{}", vectors, columns);
  report.add({.bench = {}, .name = name, .metric = "seconds", .value = median(seconds), .unit = "s"});
  // Of all threads: where other programs use the cores, too, the time that matters.
  report.add({.bench = {},
              .name = name,
              .metric = "processor_seconds",
              .value = median(processor_seconds),
              .unit = "s"});
  report.add(
      {.bench = {},
       .name = name,
       .metric = "memory_beside_the_result",
       .value = static_cast<double>(peak_bytes() - before - static_cast<int64_t>(found->basis.bytes())) /
                (1 << 20),
       .unit = "MiB"});
  measure_step(found->basis, turns, report);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  mox::define_flag("json", false, "Print one line of JSON a measurement.");
  mox::define_flag("vectors", int64_t{60}, "Snapshots.");
  mox::define_flag("columns", int64_t{25000000}, "Weights of a snapshot.");
  mox::define_flag("pair_columns", int64_t{5000000},
                   "Weights of a snapshot beside NumPy's SVD. 0: not measured.");
  mox::define_flag("components", int64_t{32}, "Components of the basis.");
  mox::define_flag("turns", int64_t{3}, "Times that each is measured; medians are reported.");
  mox::define_flag("directory", "",
                   "Where snapshots are written for a while. Empty: that of temporary files.");
  mox::define_flag("python", "python3", "A Python with NumPy.");
  try {
    mox::init(argc, argv);
    return measure();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_boost: {}\n", error.what());
    return mox::internal::exit_status_of(error);
  }
}
