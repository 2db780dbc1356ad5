// A home directory and environment variables in texts that a shell has not seen: those of a YAML file, of
// --flag=~/x (which shells leave alone), and of a program.
#pragma once

#include <string>

namespace mox::internal {

// `text` with what stands for something else put in: "~" and "~/..." at its beginning are the environment
// variable HOME, ${NAME} anywhere is the variable NAME, and $NAME is at the beginning, up to a slash or the
// end. "$${" is the text "${", "$$NAME" at the beginning "$NAME". All other texts are unchanged. Throws
// ConfigError, which begins with `where` and `option` and shows the text as `shown`, for a variable that is
// not set, a name that is none, and the home directory of somebody else (~user).
std::string expanded(const std::string& text, const std::string& where, const std::string& option,
                     const std::string& shown);

// What expanded() turns into `text`.
std::string unexpanded(const std::string& text);

}  // namespace mox::internal
