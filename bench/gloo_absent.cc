#include "bench/gloo_allreduce.h"

namespace bench {

std::unique_ptr<GlooAllreduce> make_gloo_allreduce(int, int, const std::string&) { return nullptr; }

}  // namespace bench
