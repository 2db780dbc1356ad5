#include "moxing/json/number_lists.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

constexpr size_t kMostMembers = 32;

class Reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Values = std::map<std::string, nlohmann::json>;
  using Lists = std::map<std::string, std::vector<double>>;

  Reader(Values& values, Lists& lists) : values_(values), lists_(lists) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool) override { return false; }
  bool number_integer(int64_t value) override { return put_number(value); }
  bool number_unsigned(uint64_t value) override { return put_number(value); }
  bool number_float(double, const std::string& text) override {
    const double value = json_number(text);
    return std::isfinite(value) && put_number(value);
  }
  bool string(std::string& text) override { return put(std::move(text)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return !std::exchange(has_begun_, true); }
  bool key(std::string& name) override {
    member_ = std::move(name);
    return !values_.contains(member_) && !lists_.contains(member_) &&
           values_.size() + lists_.size() < kMostMembers;
  }
  bool end_object() override { return true; }
  bool start_array(size_t) override {
    if (!has_begun_ || list_) return false;
    list_ = &lists_[member_];
    return true;
  }
  bool end_array() override {
    list_ = nullptr;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  template <typename Value>
  bool put(Value&& value) {
    if (!has_begun_ || list_) return false;
    values_[member_] = std::forward<Value>(value);
    return true;
  }
  template <typename Number>
  bool put_number(Number value) {
    if (!list_) return put(value);
    list_->push_back(static_cast<double>(value));
    return true;
  }

  Values& values_;
  Lists& lists_;
  std::vector<double>* list_ = nullptr;  // that is being read
  std::string member_;
  bool has_begun_ = false;
};

template <typename Members>
const auto& member_of(const Members& members, const std::string& member, const std::string& name) {
  const auto found = members.find(member);
  if (found == members.end()) throw DataError(fmt::format("'{}' has no \"{}\" of that kind", name, member));
  return found->second;
}

}  // namespace

NumberLists::NumberLists(std::string_view text, const std::string& name) : name_(name) {
  Reader reader(values_, lists_);
  // For the message of an error the library keeps the blanks that it has passed, at eight times their size.
  const bool has_blanks = text.find_first_of(" \n\t\r") != text.npos;
  if (has_blanks || !nlohmann::json::sax_parse(text, &reader))
    throw DataError(fmt::format("'{}' is no object of JSON, of texts, numbers and lists of numbers", name));
}

const nlohmann::json& NumberLists::value(const std::string& member) const {
  return member_of(values_, member, name_);
}

const std::vector<double>& NumberLists::list(const std::string& member) const {
  return member_of(lists_, member, name_);
}

}  // namespace mox
