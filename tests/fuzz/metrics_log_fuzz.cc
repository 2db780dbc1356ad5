// Any bytes are what a run left of metrics.jsonl: a run that goes on appends to it, and the lines
// before are lines.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "moxing/hooks/internal/metrics_log.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A file of its own: this reader also writes, and follows no links.
  static const std::string path =
      (std::filesystem::temp_directory_path() / ("moxing_fuzz_" + std::to_string(::getpid()) + ".jsonl"))
          .string();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  {
    mox::internal::MetricsLog log(4096);
    log.open(path, 10);
    log.write({{"step", 11}, {"loss", 0.5}});
  }
  {
    std::ifstream text(path);
    std::string last;
    for (std::string line; std::getline(text, line);) last = line;
    MOX_ASSERT(last == R"({"step":11,"loss":0.5})", "the line that was written is the last");
  }
  std::remove(path.c_str());
  return 0;
}
