#include "moxing/config/flag_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "moxing/config/internal/value.h"
#include "moxing/config/state.h"
#include "moxing/file/masked_address.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

using Texts = std::vector<std::string>;

KeptValue masked(KeptValue kept) {
  if (auto* text = std::get_if<std::string>(&kept)) {
    *text = file::masked_address(*text);
  } else {
    for (std::string& element : std::get<Texts>(kept)) element = file::masked_address(element);
  }
  return kept;
}

KeptValue kept_value(const OptionValue& value) {
  if (const auto* texts = std::get_if<Texts>(&value)) return *texts;
  Texts elements;
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    for (const int64_t number : *integers) elements.push_back(to_text(number));
  } else if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    for (const double number : *numbers) elements.push_back(to_text(number));
  } else {
    return to_text(value);
  }
  return elements;
}

WrittenValue as_written(const Option& option, const KeptValue& kept, const std::string& where) {
  if (const auto* text = std::get_if<std::string>(&kept)) return written_text(option, *text, where);
  WrittenValue list{.kind = WrittenValue::Kind::kList, .where = where};
  for (const std::string& element : std::get<Texts>(kept))
    list.elements.push_back({.text = element, .where = where});
  list.size = list.elements.size();
  return list;
}

// Texts are not parsed, which would put in what ~ and $NAME stand for.
OptionValue value_of_kept(const Option& option, const KeptValue& kept, const std::string& where) {
  const WrittenValue written = as_written(option, kept, where);
  OptionValue value;
  if (option.type == OptionType::kString && written.kind == WrittenValue::Kind::kScalar) {
    value = written.text;
  } else if (option.type == OptionType::kStringList) {
    Texts texts;
    for (const WrittenValue& element : written.elements) texts.push_back(element.text);
    value = std::move(texts);
  } else {
    return parse_value(option, written);
  }
  check_value(option, value, where);
  return value;
}

const OptionValue& value_of(const Setting& setting) {
  return setting.local && !setting.set ? *setting.local : setting.value();
}

}  // namespace

KeptValue kept_flag(std::string_view name) {
  KeptValue kept;
  with_configured("kept_flag", [&](ConfigStore* store) {
    const Setting& setting = store->at(name);
    if (setting.option.secret)
      throw InvalidArgument(fmt::format(
          "{} is a secret, and whoever may read a checkpoint would read it; do not keep it", name));
    kept = masked(kept_value(value_of(setting)));
  });
  return kept;
}

bool is_kept_value(std::string_view name, const KeptValue& kept) {
  const KeptValue now = kept_flag(name), then = masked(kept);
  if (now.index() == then.index()) return now == then;
  return shown_kept(now) == shown_kept(then);  // of a list the text with commas
}

void set_flag_from_kept(std::string_view name, const KeptValue& kept, const std::string& where) {
  with_configured("set_flag_from_kept", [&](ConfigStore* store) {
    Setting& setting = store->at(name);
    setting.set = value_of_kept(setting.option, kept, where);
  });
}

std::string shown_kept(const KeptValue& kept) {
  if (const auto* text = std::get_if<std::string>(&kept)) return file::masked_address(*text);
  return file::masked_address(fmt::format("{}", fmt::join(std::get<Texts>(kept), ",")));
}

std::string shown_flag(std::string_view name) {
  std::string shown;
  with_configured("shown_flag", [&](ConfigStore* store) {
    const Setting& setting = store->at(name);
    shown = shown_value(setting.option, value_of(setting));
  });
  return shown;
}

}  // namespace mox::internal
