// A JSON object of texts, numbers and lists of numbers, such as the state of a method: a list takes eight
// bytes a number, and not the 64 that a list of nlohmann's values may take while it grows.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mox {

class NumberLists {
 public:
  // Of a text as nlohmann's dump() makes it, without blanks. Throws DataError, with `name`, for another text,
  // for lists of anything else, for objects within, for a member that is there twice and for more than 32.
  NumberLists(std::string_view text, const std::string& name);

  bool has(const std::string& member) const { return values_.contains(member) || lists_.contains(member); }
  // Throw DataError if there is no such member.
  const nlohmann::json& value(const std::string& member) const;  // a number, a text, or null
  const std::vector<double>& list(const std::string& member) const;

 private:
  std::string name_;
  std::map<std::string, nlohmann::json> values_;
  std::map<std::string, std::vector<double>> lists_;
};

}  // namespace mox
