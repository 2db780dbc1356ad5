// Metrics over arrays: the graph that a metric's inputs come from has nothing but them.
#pragma once

#include <functional>
#include <random>
#include <vector>

#include "moxing/metrics/metric.h"
#include "runtime/graph/graph.h"

namespace mox::metrics {

// What makes a metric out of the tensors that stand for the arrays; the last is that of the weights,
// undefined if there are none.
using MakeMetric = std::function<Metric(const std::vector<Tensor>& inputs, const Tensor& weights)>;

inline Metric metric_over(const MakeMetric& make, const std::vector<Array>& inputs, const Array& weights) {
  Graph graph;
  const GraphScope scope(graph);
  std::vector<Tensor> tensors;
  for (const Array& input : inputs)
    tensors.push_back(graph.input(static_cast<int>(tensors.size()), input.type(), SourceLocation::current()));
  Tensor of_weights;
  if (weights.defined())
    of_weights = graph.input(static_cast<int>(tensors.size()), weights.type(), SourceLocation::current());
  Metric metric = make(tensors, of_weights);
  metric.inputs.clear();  // of a graph that ends here
  metric.weights = {};
  return metric;
}

// The result from batches of random sizes, gathered by random ranks and merged in random order.
inline Result result_in_parts(const Metric& metric, const std::vector<Array>& inputs, const Array& weights,
                              std::mt19937& random) {
  const int64_t samples = inputs[0].shape()[0];
  std::vector<State> ranks(1 + random() % 4);
  for (int64_t begin = 0; begin < samples;) {
    const int64_t end = std::min<int64_t>(samples, begin + 1 + static_cast<int64_t>(random() % 7));
    std::vector<Array> rows;
    for (const Array& input : inputs) rows.push_back(input.rows(begin, end));
    add_batch(metric, rows, weights.defined() ? weights.rows(begin, end) : Array(), begin,
              ranks[random() % ranks.size()]);
    begin = end;
  }
  std::shuffle(ranks.begin(), ranks.end(), random);
  State all;
  for (const State& rank : ranks) all.merge(State::from_bytes(rank.to_bytes()));
  return result_of(metric, all);
}

}  // namespace mox::metrics
