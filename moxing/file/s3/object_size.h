// How large an object may be.
#pragma once

#include <cstdint>

namespace mox::file::s3 {

// 64 TiB: no store takes more than 50 TB. What a store only claims to be larger is not believed, since memory
// and disk are asked for by it.
inline constexpr int64_t kMostObjectBytes = int64_t{1} << 46;

}  // namespace mox::file::s3
