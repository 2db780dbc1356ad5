// Training programs on small data of their own, and what must hold of a run whatever happened to it.
#pragma once

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/programs/process.h"

namespace mox {

// Where the Debian package dataset-fashion-mnist puts its files; tests that need them skip without.
inline constexpr const char* kFashionMnist = "/usr/share/datasets/fashion-mnist";

using Words = std::vector<std::string>;
Words operator+(Words left, const Words& right);

// Writes the four files of MNIST, uncompressed, with images of noise: the same at each call.
void write_small_data(const std::string& directory, int train_samples = 300, int test_samples = 60);
void flip_byte(const std::string& path, size_t position);

// The file of a data set: magic number, extents, content; big-endian.
std::string idx_file(uint8_t type_code, const std::vector<uint32_t>& extents, const std::string& content);

// Every file of the latest checkpoint, byte by byte: weights, optimizer, step, data position, hooks.
std::string latest_content(const std::string& log_dir);
// The lines of metrics.jsonl without what depends on the clock.
std::string metrics_without_times(const std::string& log_dir);
// The lines "test NAME: VALUE" with which a program ends; fails the test if there are none at the
// end of `out`.
std::string test_lines(const std::string& out);

// Exit status 0.
void expect_success(const ProcessResult& result);
// This exit status; the last line of stderr is one paragraph that starts with "error: ", the only such line,
// and says all of `parts`; no abort, no hang, and no words of the compiler.
void expect_error(const ProcessResult& result, const std::vector<std::string>& parts, int status = 1);
// Every checkpoint of the directory loads; at least `count`.
void expect_all_intact(const std::string& log_dir, size_t count);

// Common to most tests: small data, a log_dir, and the flags that name them.
class TrainingTest : public testing::Test {
 protected:
  TrainingTest();
  // The command of a quiet, small training of `steps` steps in `log_dir`.
  Words training(const std::string& program, const std::string& log_dir, int64_t steps,
                 const Words& flags = {}) const;
  ProcessResult train(const std::string& program, const std::string& log_dir, int64_t steps,
                      const Words& flags = {}) const {
    return run_process(training(program, log_dir, steps, flags));
  }
  // A directory name that does not exist yet.
  static std::string fresh(const std::string& name);

  const std::string data_;
  const std::string log_dir_;
};

}  // namespace mox
