// Images a second of the input side: build/bin/bench_data --images FOLDER --case bytes|images|tfrecord|raw.
//
//   bytes     the files' bytes alone
//   images    an image folder: decode, random-resized crop to 224, mirror, normalise
//   tfrecord  the same from TFRecord files, which are written to --scratch first
//   records   TFRecord with both checksums, no decoding (also in bytes a second)
//   raw       libjpeg-turbo: every image decoded whole, nothing else
//
// --cache memory|disk keeps decoded images, or with --cache_content resized|bytes images whose shorter side
// is resized to 256 or the files' bytes; --cache samples what augmentation made of the images
// (float32, in memory).
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <thread>

#include "bench/json_line.h"
#include "moxing/image/decode.h"
#include "moxing/image_sets/image_folder.h"
#include "moxing/image_sets/image_records.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/resource_limits.h"
#include "runtime/base/seconds.h"
#include "runtime/data/pipeline.h"
#include "runtime/job/job.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string images, name = "images", scratch = "/tmp/mox-bench-data";
  int threads = mox::available_cores(), passes = 2, batch = 32;
  std::string cache = "none", cache_content = "decoded";
  bool fast_decode = false, json = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) throw mox::InvalidArgument(flag + " needs a value");
      return argv[++i];
    };
    const auto number = [&] {
      const std::string text = value();
      int parsed = 0;
      const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
      if (error != std::errc() || rest != text.data() + text.size() || parsed < 1)
        throw mox::InvalidArgument(
            fmt::format("{}: expected a whole number of at least 1, got '{}'", flag, text));
      return parsed;
    };
    if (flag == "--images")
      options.images = value();
    else if (flag == "--case")
      options.name = value();
    else if (flag == "--scratch")
      options.scratch = value();
    else if (flag == "--threads")
      options.threads = number();
    else if (flag == "--passes")
      options.passes = number();
    else if (flag == "--cache")
      options.cache = value();
    else if (flag == "--cache_content")
      options.cache_content = value();
    else if (flag == "--fast_decode")
      options.fast_decode = true;
    else if (flag == "--json")
      options.json = true;
    else
      throw mox::InvalidArgument(fmt::format("unknown option '{}'", flag));
  }
  constexpr std::string_view kCaches[] = {"none", "samples", "memory", "disk"};
  if (std::ranges::find(kCaches, options.cache) == std::end(kCaches))
    throw mox::InvalidArgument(
        fmt::format("--cache must be samples, memory or disk, it is '{}'", options.cache));
  if (options.images.empty())
    throw mox::InvalidArgument("--images FOLDER is needed (bench/make_photographs.py)");
  return options;
}

// function(i) for [0, count) on some threads.
template <typename Function>
void on_threads(int threads, int64_t count, Function&& function) {
  std::atomic<int64_t> next{0};
  std::vector<std::jthread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&] {
      auto work = function();
      for (int64_t i = next++; i < count; i = next++) work(i);
    });
}

struct Result {
  double images_per_second = 0, bytes_per_second = 0;
};

mox::data::ImageOptions image_options(const Options& options) {
  mox::data::ImageOptions result;
  result.augmentation = {.height = 224,
                         .width = 224,
                         .crop = mox::image::Crop::kRandomResized,
                         .flip = true,
                         .mean = {0.485f, 0.456f, 0.406f},
                         .stddev = {0.229f, 0.224f, 0.225f},
                         .fast_decode = options.fast_decode};
  result.cache_content = mox::data::cache_content_from_string(options.cache_content);
  if (options.cache == "memory") result.cache = mox::data::ImageCache::kMemory;
  if (options.cache == "disk") {
    result.cache = mox::data::ImageCache::kDirectory;
    result.cache_directory = options.scratch + "/decoded";
    result.remove_cache_on_finish = true;
  }
  return result;
}

// The rate of the passes after the first, which warms the page cache, or fills ours.
Result run_pipeline(mox::Dataset dataset, const Options& options) {
  const int64_t samples = dataset.cardinality();
  if (options.cache == "samples") dataset = dataset.cache();
  mox::Pipeline pipeline(dataset.shuffle(samples).repeat(options.passes).batch(options.batch),
                         {.seed = 1, .threads = options.threads, .memory_budget_bytes = size_t{8} << 30});
  mox::Batch batch;
  int64_t seen = 0, counted = 0;
  Clock::time_point start = Clock::now();
  while (pipeline.next(&batch)) {
    seen += batch.size;
    if (seen <= samples)
      start = Clock::now();
    else
      counted += batch.size;
  }
  return {static_cast<double>(counted) / mox::seconds_since(start), 0};
}

std::vector<std::string> files_of(const mox::data::ImageClassificationRaw& folder) {
  std::vector<std::string> paths;
  for (const auto& file : folder.files())
    paths.push_back((std::filesystem::path(folder.directory()) / file.path).string());
  return paths;
}

// Every file's bytes, decoded whole or left alone.
Result run_files(const std::vector<std::string>& paths, bool decode, int threads) {
  std::atomic<uint64_t> bytes{0};
  const auto start = Clock::now();
  on_threads(threads, static_cast<int64_t>(paths.size()), [&] {
    return [&, decoder = std::make_shared<mox::image::Decoder>()](int64_t i) {
      const std::string& path = paths[i];
      const std::string content = mox::read_file(path);
      bytes += content.size();
      if (!decode) return;
      decoder->open(std::as_bytes(std::span(content.data(), content.size())), path);
      decoder->decode({0, 0, decoder->width(), decoder->height()}, [](int, const uint8_t*) {});
    };
  });
  const double seconds = mox::seconds_since(start);
  return {static_cast<double>(paths.size()) / seconds, static_cast<double>(bytes) / seconds};
}

Result run_records(const std::vector<std::string>& paths, int threads) {
  const auto files = mox::data::TfRecordFiles::open(paths);
  const auto start = Clock::now();
  on_threads(threads, files->size(), [&] {
    return [&, buffer = std::make_shared<mox::data::RecordBuffer>()](int64_t i) {
      files->read(i, buffer.get());
    };
  });
  const double seconds = mox::seconds_since(start);
  return {static_cast<double>(files->size()) / seconds, static_cast<double>(files->bytes()) / seconds};
}

// What tells a folder from itself with other files in it.
std::string identity_of(const mox::data::ImageClassificationRaw& folder) {
  namespace fs = std::filesystem;
  uintmax_t bytes = 0;
  fs::file_time_type changed = fs::file_time_type::min();
  for (const std::string& path : files_of(folder)) {
    bytes += fs::file_size(path);
    changed = std::max(changed, fs::last_write_time(path));
  }
  return fmt::format("{}: {} files, {} bytes, changed {}\n", fs::absolute(folder.directory()).string(),
                     folder.files().size(), bytes, changed.time_since_epoch().count());
}

// The folder as TFRecord files in the scratch directory; those of an earlier run if they are of
// the same files.
std::vector<std::string> records_of(const mox::data::ImageClassificationRaw& folder,
                                    const std::string& scratch) {
  const std::string prefix = scratch + "/photographs", source = scratch + "/source.txt";
  const std::string identity = identity_of(folder);
  if (std::filesystem::exists(source) && mox::read_file(source) == identity)
    return mox::data::match_files(prefix + "-*-of-*");
  std::filesystem::remove(source);
  auto paths = mox::data::convert_image_folder(folder, prefix, {.shards = 4});
  mox::write_file_atomically(source, identity);
  return paths;
}

Result run(const Options& options) {
  const mox::data::ImageClassificationRaw folder(options.images);
  if (options.name == "images") return run_pipeline(folder.dataset(image_options(options)), options);
  if (options.name == "tfrecord") {
    records_of(folder, options.scratch);
    return run_pipeline(mox::data::image_classification_tfrecord(options.scratch + "/photographs-*-of-*",
                                                                 {.image = image_options(options)}),
                        options);
  }
  Result result;
  for (int pass = 0; pass < options.passes; ++pass) {
    if (options.name == "records")
      result = run_records(records_of(folder, options.scratch), options.threads);
    else if (options.name == "bytes" || options.name == "raw")
      result = run_files(files_of(folder), options.name == "raw", options.threads);
    else
      throw mox::InvalidArgument(fmt::format(
          "there is no case '{}'; there are bytes, images, tfrecord, records, raw", options.name));
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  const Result result = run(options);
  const std::string name = options.name + (options.cache == "none" ? "" : "_cached_" + options.cache) +
                           (options.cache_content == "decoded" ? "" : "_" + options.cache_content) +
                           (options.fast_decode ? "_fast" : "");
  if (options.json) {
    bench::print_json_line({.bench = "data",
                            .name = name,
                            .metric = "images_per_second",
                            .value = result.images_per_second,
                            .unit = "images/s"});
    if (result.bytes_per_second > 0)
      bench::print_json_line({.bench = "data",
                              .name = name,
                              .metric = "bytes_per_second",
                              .value = result.bytes_per_second,
                              .unit = "bytes/s"});
  } else {
    fmt::print("{}: {:.0f} images/s", name, result.images_per_second);
    if (result.bytes_per_second > 0) fmt::print(", {:.2f} GB/s", result.bytes_per_second * 1e-9);
    fmt::print("\n");
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << "bench_data: " << error.what() << "\n";
  return mox::internal::exit_status_of(error);
}
