// Whether oneDNN's reorder can be trusted with padding on this machine.
//
// oneDNN cuts a reorder by the size of the first cache. Where the processor does not tell it (a virtual
// machine may hide cpuid's leaf 0x8000001D), versions that read the empty leaf as a cache of one byte cut
// what has padding where that is not provided for: elements of filters come to lie in wrong places, without
// an error (seen with 3.7.2, which Debian 13 has). What a version does on which machine is not written down
// anywhere, so it is tried.
#pragma once

#include "runtime/graph/layout.h"

namespace mox {

// Whether a small value of the kind of `target` (with inner blocks of two dimensions, as filters have, or of
// one, as images have) arrives as it should in oneDNN's blocks and their padding. Tried once per process and
// kind, at first use, in a millisecond or two. True for a target without padding. Any thread.
bool reorders_into_padding(const Layout& target);

}  // namespace mox
