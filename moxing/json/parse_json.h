// nlohmann::json's values of a text, whatever locales the program and its threads have.
//
// The library's own parse asks localeconv for the decimal sign that strtod wants, which has one answer for
// all threads: another thread of another locale may change it in between. Then strtod ends at the sign, and
// 0.25 is 0, or a check of the token finds no fraction in it.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "moxing/json/bounded_json.h"
#include "runtime/base/error.h"

namespace mox {

// The number that the library's lexer has cut out, for a `number_float` of one's own: the value that comes
// with the text cannot be trusted. Infinite if it is too large for a double.
double json_number(const std::string& text);

namespace internal {

inline constexpr const char* kInnerText = "a text of JSON";

template <typename Json>
class JsonBuilder final : public nlohmann::json_sax<Json> {
 public:
  Json take() { return std::move(whole_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(int64_t value) override { return put(value); }
  bool number_unsigned(uint64_t value) override { return put(value); }
  bool number_float(double, const std::string& text) override {
    const double value = json_number(text);
    return std::isfinite(value) && put(value);
  }
  bool string(std::string& text) override { return put(std::move(text)); }
  bool binary(typename Json::binary_t& bytes) override { return put(std::move(bytes)); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool key(std::string& name) override {
    auto& object = open_.back()->template get_ref<Object&>();
    if constexpr (kIsOrdered)
      named_ = &appended(object, std::move(name));
    else
      named_ = &object[std::move(name)];
    return true;
  }
  bool end_object() override {
    if constexpr (kIsOrdered) keep_last_of_each(open_.back()->template get_ref<Object&>());
    return close();
  }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  using Object = typename Json::object_t;
  // The library's ordered object is a vector: it looks for each key among all others, hours of a large text,
  // and copies all that its values hold where it grows.
  static constexpr bool kIsOrdered = std::is_same_v<Json, nlohmann::ordered_json>;

  static Json& appended(Object& object, std::string name) {
    if (object.size() == object.capacity()) {
      Object larger;
      larger.reserve(std::max<size_t>(1, 2 * object.size()));
      for (auto& [key, value] : object) larger.emplace_back(key, std::move(value));
      object.swap(larger);
    }
    return object.emplace_back(std::move(name), Json()).second;
  }

  // A key that is there twice has its last value at its first place, as in the library.
  static void keep_last_of_each(Object& object) {
    const auto entry = [&](size_t index) -> auto& {
      return *(object.begin() + static_cast<ptrdiff_t>(index));
    };
    std::vector<size_t> order(object.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {},
                      [&](size_t index) { return std::pair(std::string_view(entry(index).first), index); });
    std::vector<bool> is_repeated(object.size());
    bool is_any = false;
    for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      for (end = begin + 1; end < order.size() && entry(order[end]).first == entry(order[begin]).first; ++end)
        is_any = is_repeated[order[end]] = true;
      if (end > begin + 1) entry(order[begin]).second = std::move(entry(order[end - 1]).second);
    }
    if (!is_any) return;
    Object kept;
    for (size_t i = 0; i < order.size(); ++i)
      if (!is_repeated[i]) appended(kept, entry(i).first) = std::move(entry(i).second);
    object.swap(kept);
  }

  // Where the value is kept: its address holds until another one comes beside it.
  Json* placed(Json value) {
    if (open_.empty()) return &(whole_ = std::move(value));
    if (!open_.back()->is_array()) return &(*named_ = std::move(value));
    open_.back()->push_back(std::move(value));
    return &open_.back()->back();
  }
  bool put(Json value) { return placed(std::move(value)) != nullptr; }
  bool open(Json value) {
    open_.push_back(placed(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json whole_;
  std::vector<Json*> open_;  // lists and objects, the innermost last
  Json* named_ = nullptr;    // the value of the key that was read last
};

// Of a text whose bound is known to hold.
template <typename Json>
Json parse_bounded(std::string_view text, const std::string& name) {
  JsonBuilder<Json> builder;
  if (Json::sax_parse(text, &builder)) return builder.take();
  const auto refused = nlohmann::json::parse(text);  // throws, and says why
  throw DataError("'" + name + "' has a number that is too large");
}

}  // namespace internal

// As Json::parse: throws Json::exception for what is no JSON, and DataError for numbers that no double holds
// and for what would take far more memory than the text (bounded_json.h): texts lie in texts, in the state of
// a checkpoint too, and the bound of the outer one says nothing of the values of the inner ones. `name` is
// what a DataError calls the text: the file that it is of, or that the outer text is of.
template <typename Json = nlohmann::json>
Json parse_json(std::string_view text, const std::string& name = internal::kInnerText) {
  require_bounded_json(text, name);
  return internal::parse_bounded<Json>(text, name);
}

// The same where the values may take `times` the text at most (bounded_json.h), and no mebibyte beside it.
template <typename Json = nlohmann::json>
Json parse_json(std::string_view text, const std::string& name, size_t times) {
  require_bounded_json(text, name, times);
  return internal::parse_bounded<Json>(text, name);
}

// Discarded (is_discarded()) where parse_json would throw Json::exception.
template <typename Json = nlohmann::json>
Json parse_json_or_discard(std::string_view text, const std::string& name = internal::kInnerText) {
  require_bounded_json(text, name);
  internal::JsonBuilder<Json> builder;
  return Json::sax_parse(text, &builder) ? builder.take() : Json(Json::value_t::discarded);
}

}  // namespace mox
