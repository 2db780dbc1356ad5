// Options set from text, as the command line spells them: for values that were kept somewhere.
#pragma once

#include <string>
#include <string_view>

namespace mox::internal {

// set_flag with what `text`, that flag() has given, spells. Throws ConfigError, naming `where` the text comes
// from, for what the option cannot be; NotFound for a name that is not declared.
void set_flag_from_text(std::string_view name, const std::string& text, const std::string& where);

// Whether it is one of define_secret_flag. Throws NotFound for a name that is not declared.
bool is_secret_flag(std::string_view name);

}  // namespace mox::internal
