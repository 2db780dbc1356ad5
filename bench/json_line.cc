#include "bench/json_line.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace bench {
namespace {

template <typename T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

void print_json_line(const Measurement& measurement) {
  const nlohmann::ordered_json line = {{"bench", measurement.bench},
                                       {"case", measurement.name},
                                       {"metric", measurement.metric},
                                       {"value", measurement.value},
                                       {"unit", measurement.unit},
                                       {"peer", or_null(measurement.peer)},
                                       {"peer_value", or_null(measurement.peer_value)},
                                       {"ratio", or_null(measurement.ratio)}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

}  // namespace bench
