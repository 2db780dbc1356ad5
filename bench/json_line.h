// One measured value as a line of JSON, in the form that every program in bench/ prints under --json.
#pragma once

#include <optional>
#include <string>

namespace bench {

struct Measurement {
  std::string bench;   // the program: "small"
  std::string name;    // the case within it: "lenet_32"
  std::string metric;  // "steps_per_second"
  double value = 0;
  std::string unit;  // "steps/s"
  // What it is compared with: who, their value of the same metric, and the ratio ours / theirs (null where
  // there is none).
  std::optional<std::string> peer = {};
  std::optional<double> peer_value = {};
  std::optional<double> ratio = {};
};

// {"bench", "case", "metric", "value", "unit", "peer", "peer_value", "ratio"} and a line end, on stdout.
void print_json_line(const Measurement& measurement);

}  // namespace bench
