#include "moxing/config/warn_once.h"

#include "moxing/config/state.h"
#include "runtime/base/log.h"

namespace mox::internal {

void warn_once(const std::string& text) {
  bool is_new = false;
  with_config([&](ConfigState* state) { is_new = state->warnings.insert(text).second; });
  if (is_new) log_warning(text);
}

}  // namespace mox::internal
