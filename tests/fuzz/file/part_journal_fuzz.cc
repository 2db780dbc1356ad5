// Any bytes are the journal of a copy under way: what it says is written as it is read.
#include <cstdint>
#include <string>

#include "moxing/file/internal/parts/part_journal.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mox::file::internal;
  const std::string_view journal(reinterpret_cast<const char*>(data), size);
  for (const auto& [index, md5] : parse_part_journal(journal)) {
    MOX_ASSERT(index >= 0 && md5.size() == 16, "a range has a number and an MD5");
    const auto again = parse_part_journal(part_journal_line(index, md5));
    MOX_ASSERT(again.size() == 1 && again.at(index) == md5, "what is written is read");
  }
  return 0;
}
