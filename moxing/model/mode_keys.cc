#include "moxing/model/mode_keys.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace mox {

std::string_view to_string(ModeKeys mode) {
  switch (mode) {
    case ModeKeys::TRAIN:
      return "train";
    case ModeKeys::EVAL:
      return "eval";
    case ModeKeys::PREDICT:
      return "predict";
  }
  MOX_ASSERT(false, "every mode has a name");
}

ModeKeys mode_from_string(std::string_view name) {
  for (ModeKeys mode : {ModeKeys::TRAIN, ModeKeys::EVAL, ModeKeys::PREDICT})
    if (to_string(mode) == name) return mode;
  throw InvalidArgument(fmt::format("unknown run mode '{}'; expected train, eval or predict", name));
}

}  // namespace mox
