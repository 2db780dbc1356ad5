// With MOX_TEST_KEEP_FILES in the environment, tests leave behind what they have written, for whoever wants
// to look into it (tests/programs/object_store/secrets_test). It lies below TMPDIR.
#pragma once

#include <cstdlib>

namespace mox {

inline bool keeps_test_files() { return std::getenv("MOX_TEST_KEEP_FILES") != nullptr; }

}  // namespace mox
