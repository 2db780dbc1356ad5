// Shared by the data tests: small data sets of numbers, and running them.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/pipeline.h"

namespace mox::data_testing {

inline const std::vector<TensorType> kScalar{{DType::kInt32, Shape{}}};

using Numbers = std::vector<int32_t>;
using Batches = std::vector<Numbers>;

inline Numbers range(int32_t begin, int32_t end) {
  Numbers numbers;
  for (int32_t i = begin; i < end; ++i) numbers.push_back(i);
  return numbers;
}

inline Array numbers_array(const Numbers& numbers) {
  return Array::from<int32_t>({static_cast<int64_t>(numbers.size())}, std::span<const int32_t>(numbers));
}

// 0, 1, ..., count - 1.
inline Dataset numbers(int32_t count) { return Dataset::from_arrays({numbers_array(range(0, count))}); }

// The same as a stream without positions.
inline Dataset generated(int32_t count) {
  return Dataset::from_generator({{DType::kInt32, Shape{}}}, [count]() -> Generator {
    return [count, i = 0](Element* element) mutable {
      if (i == count) return false;
      *element = {Array::scalar<int32_t>(i++)};
      return true;
    };
  });
}

inline int32_t value_of(const Element& element, size_t component = 0) {
  return element[component].values<int32_t>()[0];
}

inline Element scalar_element(int32_t value) { return {Array::scalar<int32_t>(value)}; }

inline Numbers rows_of(const Batch& batch, size_t component = 0) {
  const auto values = batch.components[component].values<int32_t>();
  return {values.begin(), values.end()};
}

// All batches of the first component.
inline Batches run(const Dataset& dataset, const PipelineOptions& options = {},
                   const std::string& cursor = {}, size_t at_most = SIZE_MAX) {
  Pipeline pipeline(dataset, options, cursor);
  Batches batches;
  Batch batch;
  while (batches.size() < at_most && pipeline.next(&batch)) batches.push_back(rows_of(batch));
  return batches;
}

// The elements of a data set of scalars, in order.
inline Numbers elements(const Dataset& dataset, const PipelineOptions& options = {},
                        size_t at_most = SIZE_MAX) {
  Numbers numbers;
  for (const auto& batch : run(dataset.batch(1), options, {}, at_most)) numbers.push_back(batch[0]);
  return numbers;
}

// Long enough that a pipeline hands its batches to the flow graph.
inline void work() { std::this_thread::sleep_for(std::chrono::microseconds(30)); }

// The same elements, each after some work.
inline Dataset slow(const Dataset& dataset) {
  return dataset.map(kScalar, [](const SampleContext&, const Element& e) {
    work();
    return e;
  });
}

}  // namespace mox::data_testing
