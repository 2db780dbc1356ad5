// MD5 (RFC 1321) of many texts at a time, each in a lane of the processor's registers: one text alone is a
// chain of steps that wait for one another, sixteen of them keep the processor busy. For parts of large
// objects, of whose ETags MD5 is what stores make; OpenSSL has no such form.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace mox::file {

inline constexpr size_t kMd5Lanes = 16;
using Md5Digest = std::array<char, 16>;

// digests[i] is that of texts[i]. A call of up to kMd5Lanes texts costs what the longest would with all lanes
// in use. Any thread.
void md5_of_each(std::span<const std::string_view> texts, std::span<Md5Digest> digests);

}  // namespace mox::file
