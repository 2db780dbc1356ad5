#include "tests/programs/training.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <regex>
#include <sstream>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/file.h"
#include "tests/moxing/checkpoint/checkpoint_samples.h"

namespace mox {
namespace {

constexpr int kPixels = 28 * 28;
constexpr int kClasses = 10;
constexpr uint8_t kUnsignedByte = 0x08;

// Numbers without a pattern (Knuth's 64-bit linear congruential generator); nothing depends on their quality.
std::string noise(size_t bytes, uint64_t seed, int limit) {
  std::string text(bytes, '\0');
  for (char& byte : text) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>((seed >> 33) % static_cast<uint64_t>(limit));
  }
  return text;
}

void write_split(const std::string& directory, const std::string& prefix, int samples, uint64_t seed) {
  const auto count = static_cast<size_t>(samples);
  write_file_atomically(
      directory + "/" + prefix + "-images-idx3-ubyte",
      idx_file(kUnsignedByte, {static_cast<uint32_t>(samples), 28, 28}, noise(count * kPixels, seed, 256)));
  write_file_atomically(
      directory + "/" + prefix + "-labels-idx1-ubyte",
      idx_file(kUnsignedByte, {static_cast<uint32_t>(samples)}, noise(count, seed + 1, kClasses)));
}

}  // namespace

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

std::string idx_file(uint8_t type_code, const std::vector<uint32_t>& extents, const std::string& content) {
  std::string file{'\0', '\0', static_cast<char>(type_code), static_cast<char>(extents.size())};
  for (uint32_t extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(extent >> shift & 0xff);
  return file + content;
}

void write_small_data(const std::string& directory, int train_samples, int test_samples) {
  make_directories(directory);
  write_split(directory, "train", train_samples, 1);
  write_split(directory, "t10k", test_samples, 5);
}

void flip_byte(const std::string& path, size_t position) {
  std::string content = read_file(path);
  content.at(position) = static_cast<char>(content.at(position) ^ 0x10);
  write_file_atomically(path, content);
}

std::string latest_content(const std::string& log_dir) {
  const auto latest = latest_checkpoint(log_dir);
  if (!latest) return "no checkpoint in " + log_dir;
  std::string all = std::filesystem::path(*latest).filename().string();
  for (const std::string& name : names_in(*latest))
    all += "\n" + name + "\n" + read_file(*latest + "/" + name);
  return all;
}

std::string metrics_without_times(const std::string& log_dir) {
  static const std::regex clock("\"samples_per_second\":[^,}]*,?");
  return std::regex_replace(read_file(log_dir + "/metrics.jsonl"), clock, "");
}

std::string test_lines(const std::string& out) {
  std::string found;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("test "))
      found += line + "\n";
    else
      found.clear();
  }
  EXPECT_FALSE(found.empty()) << "no test lines at the end of: " << out;
  return found;
}

void expect_success(const ProcessResult& result) {
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.status, 0) << "signal " << result.signal << "\n" << result.out << result.err;
}

void expect_error(const ProcessResult& result, const std::vector<std::string>& parts, int status) {
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.signal, 0) << result.err;
  EXPECT_EQ(result.status, status) << result.err;
  std::string last;
  int errors = 0;
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line); last = line) errors += line.starts_with("error: ");
  EXPECT_EQ(errors, 1) << result.err;
  EXPECT_TRUE(last.starts_with("error: ")) << result.err;
  EXPECT_TRUE(result.err.ends_with('\n')) << result.err;
  EXPECT_LT(last.size(), 900u) << last;
  for (const std::string& part : parts) EXPECT_THAT(last, testing::HasSubstr(part));
  for (const char* noise :
       {"std::", "terminate called", "what():", "mox::internal", "Assertion", "basic_string"})
    EXPECT_THAT(result.err, testing::Not(testing::HasSubstr(noise)));
}

void expect_all_intact(const std::string& log_dir, size_t count) {
  const auto entries = list_checkpoints(log_dir);
  EXPECT_GE(entries.size(), count) << log_dir;
  for (const CheckpointEntry& entry : entries) EXPECT_EQ(load_checkpoint(entry.path).global_step, entry.step);
}

TrainingTest::TrainingTest() : data_(fresh("data")), log_dir_(fresh("log_dir")) { write_small_data(data_); }

std::string TrainingTest::fresh(const std::string& name) { return fresh_directory(name); }

Words TrainingTest::training(const std::string& program, const std::string& log_dir, int64_t steps,
                             const Words& flags) const {
  return Words{program,
               "--data_url=" + data_,
               "--train_url=" + log_dir,
               "--batch_size=7",
               "--max_number_of_steps=" + std::to_string(steps),
               "--log_every_n_steps=0",
               "--save_model_secs=0"} +
         flags;
}

}  // namespace mox
