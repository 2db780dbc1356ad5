// Members of a JSON object that keeps their order.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace mox {

// Behind the other members, of which none may have the name: operator[] would look at each of them, and the
// time of an object go with the square of their number.
inline void append_member(nlohmann::ordered_json& object, const std::string& name,
                          nlohmann::ordered_json value) {
  object.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(name, std::move(value));
}

}  // namespace mox
