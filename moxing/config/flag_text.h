// The values of options as they are kept somewhere, and given back: by a checkpoint, say.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mox::internal {

// A value as text, as flag() gives it, or of a list the text of each element.
using KeptValue = std::variant<std::string, std::vector<std::string>>;

// The value of a flag. Addresses are masked (moxing/file/masked_address.h): whoever may read what is kept
// reads them. Throws InvalidArgument for one of define_secret_flag, NotFound for a name that is not declared.
KeptValue kept_flag(std::string_view name);

// Whether the flag has the value `kept`, but for who asks in an address.
bool is_kept_value(std::string_view name, const KeptValue& kept);

// set_flag with `kept`, exactly: in a text nothing stands for something else, neither ~ nor $NAME. Of a list
// `kept` may also be the text of it with commas, as was kept earlier. Throws ConfigError, naming `where` it
// comes from, for what the option cannot be, and for an address that was masked; NotFound for a name that is
// not declared.
void set_flag_from_kept(std::string_view name, const KeptValue& kept, const std::string& where);

// What may be shown of a kept value, and of the value of a flag: as flag() gives it, masked.
std::string shown_kept(const KeptValue& kept);
std::string shown_flag(std::string_view name);

}  // namespace mox::internal
