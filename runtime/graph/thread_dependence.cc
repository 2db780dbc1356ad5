#include "runtime/graph/thread_dependence.h"

namespace mox {
namespace {

constexpr std::string_view kMark = " *";

}  // namespace

void mark_bits_by_threads(Kernel& kernel) {
  if (!has_bits_by_threads(kernel)) kernel.implementation += kMark;
}

bool has_bits_by_threads(const Kernel& kernel) { return kernel.implementation.ends_with(kMark); }

}  // namespace mox
