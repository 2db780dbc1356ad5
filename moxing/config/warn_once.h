// Warnings of what is looked at several times in a run: a training reads its data again for each evaluation.
#pragma once

#include <string>

namespace mox::internal {

// As log_warning, once for each text as long as the configuration (mox::init) stands.
void warn_once(const std::string& text);

}  // namespace mox::internal
