// state.json of a checkpoint: the step, the caller's state and the stamps of the tensor files, sealed
// by a CRC-32.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "moxing/checkpoint/safetensors.h"

namespace mox::internal {

struct StateFile {
  int64_t global_step = 0;
  std::map<std::string, SafetensorsStamp> files;  // by file name
  std::map<std::string, std::string> state;       // JSON texts
};

// Throws InvalidArgument for a state value that is not JSON as Checkpoint::state takes it.
std::string encode_state_file(const StateFile& state);

// Throws DataError, with `path` in the text, unless `text` is byte for byte what encode_state_file made.
StateFile decode_state_file(std::string_view text, const std::string& path);

}  // namespace mox::internal
