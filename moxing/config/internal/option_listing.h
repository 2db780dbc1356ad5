// What is written about the options: --help, the reference page, the effective configuration.
#pragma once

#include <string>

#include "moxing/config/internal/store.h"

namespace mox::internal {

std::string help_text(const std::string& program, const ConfigStore& store);
std::string effective_yaml(const ConfigStore& store);

}  // namespace mox::internal
