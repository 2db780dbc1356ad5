// Inputs made of others by chance, as fuzzers make them, where there is no libFuzzer.
#pragma once

#include <cstdint>
#include <string>

namespace mox::fuzz {

// `content` with some changes: bits and bytes, numbers (in digits and in binary) at the bounds of their
// types, pieces that go, are there twice or come from `other`. The same for the same seed, on each machine.
std::string mutated(std::string content, const std::string& other, uint64_t seed);

}  // namespace mox::fuzz
