#include "moxing/config/flag_text.h"

#include "moxing/config/internal/value.h"
#include "moxing/config/state.h"

namespace mox::internal {

void set_flag_from_text(std::string_view name, const std::string& text, const std::string& where) {
  with_configured("set_flag_from_text", [&](ConfigStore* store) {
    Setting& setting = store->at(name);
    const OptionType type = setting.option.type;
    const bool is_list = type == OptionType::kIntegerList || type == OptionType::kNumberList ||
                         type == OptionType::kStringList;
    store_set(&setting, parse_value(setting.option, is_list ? split_list(text, where)
                                                            : WrittenValue{.text = text, .where = where}));
  });
}

bool is_secret_flag(std::string_view name) {
  bool secret = false;
  with_configured("is_secret_flag", [&](ConfigStore* store) { secret = store->at(name).option.secret; });
  return secret;
}

}  // namespace mox::internal
