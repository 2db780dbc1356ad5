// What the user of a program says of an option, apart from what the program itself says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mox::internal {

// Whether a configuration file or the command line gives the option, and another value than the program does
// by a run spec: the file that a run writes holds those, too. What set_flag has replaced does not count.
// Throws NotFound for an option that is not declared.
bool is_given_by_user(std::string_view name);

// What the program says of an option of one text by its name, in RunSpec::options or to mox::init, whatever
// the user says.
std::optional<std::string> text_of_program(std::string_view name);
// Whether the program says anything of an option by its name, and whether that is its value: the user says
// nothing else.
bool is_said_by_program(std::string_view name);
bool is_value_of_program(std::string_view name);
// Until the next run the option is without a value, though the program has given one by its name.
void set_aside_value_of_program(std::string_view name);

}  // namespace mox::internal
