#include "moxing/checkpoint/checkpoint_broadcast.h"

#include <nlohmann/json.hpp>

#include "moxing/json/parse_json.h"

namespace mox::internal {
namespace {

nlohmann::json types_of(const std::vector<NamedArray>& arrays) {
  nlohmann::json list = nlohmann::json::array();
  for (const NamedArray& entry : arrays)
    list.push_back({{"name", entry.name},
                    {"dtype", static_cast<int>(entry.value.dtype())},
                    {"shape", std::vector<int64_t>(entry.value.shape().begin(), entry.value.shape().end())}});
  return list;
}

std::vector<NamedArray> arrays_of(const nlohmann::json& list) {
  std::vector<NamedArray> arrays;
  for (const nlohmann::json& entry : list)
    arrays.push_back(
        {entry.at("name").get<std::string>(), Array(static_cast<DType>(entry.at("dtype").get<int>()),
                                                    Shape(entry.at("shape").get<std::vector<int64_t>>()))});
  return arrays;
}

}  // namespace

void broadcast_checkpoint(Communicator& ranks, Checkpoint* checkpoint) {
  if (ranks.size() == 1) return;
  const bool root = ranks.rank() == 0;
  std::string header;
  if (root)
    header = nlohmann::json{{"step", checkpoint->global_step},
                            {"state", checkpoint->state},
                            {"variables", types_of(checkpoint->variables)},
                            {"slots", types_of(checkpoint->optimizer_slots)}}
                 .dump();
  header = ranks.broadcast_text(header);
  if (!root) {
    const nlohmann::json json = parse_json(header);
    checkpoint->global_step = json.at("step").get<int64_t>();
    checkpoint->state = json.at("state").get<std::map<std::string, std::string>>();
    checkpoint->variables = arrays_of(json.at("variables"));
    checkpoint->optimizer_slots = arrays_of(json.at("slots"));
  }
  for (auto* arrays : {&checkpoint->variables, &checkpoint->optimizer_slots})
    for (NamedArray& entry : *arrays) ranks.broadcast({entry.value.data(), entry.value.bytes()});
}

}  // namespace mox::internal
