// A tensor value and its name: one entry of a checkpoint or of a safetensors file.
#pragma once

#include <string>

#include "runtime/tensor/array.h"

namespace mox {

struct NamedArray {
  std::string name;
  Array value;  // shares its buffer when copied; clone it for a snapshot
};

}  // namespace mox
