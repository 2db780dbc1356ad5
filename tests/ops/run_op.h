// Runs what an op function builds, on teams of several sizes, and demands the same bits from each.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/exec/evaluate.h"
#include "tests/support/message_of.h"
#include "tests/support/print.h"

namespace mox::test {

using BuildMany = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

inline std::vector<Array> run_ops(const BuildMany& build, const std::vector<Array>& inputs,
                                  EvaluateOptions options = {}) {
  Graph graph;
  GraphScope scope(graph);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors.push_back(graph.input(static_cast<int>(i), inputs[i].type(), SourceLocation::current()));
  const std::vector<Tensor> fetches = build(tensors);
  std::vector<Array> first;
  for (int threads : {1, 2, 3}) {
    options.threads = threads;
    std::vector<Array> results = evaluate(fetches, inputs, options);
    if (first.empty()) first = results;
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].type(), fetches[i].type());
      EXPECT_TRUE(results[i].bytes() == 0 ||
                  std::memcmp(results[i].data(), first[i].data(), results[i].bytes()) == 0)
          << "result " << i << " differs between 1 and " << threads << " threads";
    }
  }
  return first;
}

inline Array run_op(const std::function<Tensor(std::span<const Tensor>)>& build,
                    const std::vector<Array>& inputs, const EvaluateOptions& options = {}) {
  return run_ops([&](std::span<const Tensor> x) { return std::vector<Tensor>{build(x)}; }, inputs,
                 options)[0];
}

template <typename T>
std::vector<T> values_of(const Array& array) {
  const auto values = array.values<T>();
  return {values.begin(), values.end()};
}

// 0, 1, 2, ... (converted to T), so that every element of small arrays is told apart.
template <typename T = float>
Array counting(Shape shape) {
  Array array(dtype_of<T>, std::move(shape));
  int64_t next = 0;
  for (T& value : array.values<T>()) value = static_cast<T>(next++);
  return array;
}

// The text of the InvalidArgument that building an op throws on inputs of the given types.
inline std::string build_error(const BuildMany& build, const std::vector<TensorType>& types) {
  return message_of<InvalidArgument>([&] {
    Graph graph;
    GraphScope scope(graph);
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < types.size(); ++i)
      tensors.push_back(graph.input(static_cast<int>(i), types[i], SourceLocation::current()));
    build(tensors);
  });
}

}  // namespace mox::test
