// Any bytes are the results.json that an evaluation finds beside its checkpoint: with its own entry it is
// JSON that the next one reads, or a DataError names it.
#include <cstdint>
#include <string>

#include "moxing/engine/session/internal/results_file.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mox::internal;
  PassResults results{.checkpoint = "log_dir/checkpoint-9", .global_step = 9, .samples = 4, .seconds = 0.5};
  results.evaluation.numbers = {{"accuracy", 0.25}};
  try {
    const std::string first =
        results_with(std::string(reinterpret_cast<const char*>(data), size), "results.json", results);
    MOX_ASSERT(first.find("\"accuracy\": 0.25") != std::string::npos, "the entry is there");
    MOX_ASSERT(first.size() > 16 * size + (1 << 16) || results_with(first, "results.json", results) == first,
               "what was written is read, and stays as it is");
  } catch (const mox::DataError& error) {
    MOX_ASSERT(std::string(error.what()).find("results.json") != std::string::npos, "the file is named");
  }
  return 0;
}
