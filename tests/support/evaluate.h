// Running small graphs in tests, with everything that a real run compiles with.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "runtime/exec/evaluate.h"
#include "tests/support/message_of.h"
#include "tests/support/print.h"

namespace mox::test {

// How a program is compiled: default_rules and convert_layout; or with no rules at all.
CompileOptions compile_options();
CompileOptions compile_options_without_rules();

// mox::evaluate with compile_options(). (Another name, because mox::evaluate would be found beside it.)
std::vector<Array> run_graph(std::span<const Tensor> fetches, std::span<const Array> inputs = {},
                             EvaluateOptions options = {});
Array run_graph(const Tensor& fetch, std::span<const Array> inputs = {}, EvaluateOptions options = {});

// Makes the tensors to look at from the graph's inputs.
using Build = std::function<Tensor(std::span<const Tensor> inputs)>;
using BuildMany = std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>;

// Builds a graph with one input for each array, runs it, returns the results. Runs it three ways and expects:
// the same bits on one thread and on three (but for a filter's gradient that oneDNN sums: the same within
// rounding); the same values, within rounding (1e-4 of them or `absolute`), with no rewrite rules.
Array evaluate_op(const Build& build, const std::vector<Array>& inputs);
std::vector<Array> evaluate_ops(const BuildMany& build, const std::vector<Array>& inputs,
                                double absolute = 1e-5);

// float32 values, uniform in [low, high), the same for the same seed.
Array random_array(const Shape& shape, uint64_t seed, float low = -1.0f, float high = 1.0f);

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Expects two arrays of one type with elements that differ by at most absolute + relative * |expected|. NaN
// equals NaN.
void expect_close(const Array& actual, const Array& expected, double relative = 1e-5, double absolute = 1e-6);

}  // namespace mox::test
