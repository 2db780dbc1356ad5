// Archives for tests, with the sizes and checksums that are wanted of them.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::data {

struct ZipSample {
  std::string name, content;
  bool deflated = false;
  int64_t claims_more = 0;  // bytes than the content has
  std::string packed = {};  // instead of what the content gives
};

inline std::string deflated(const std::string& content) {
  z_stream stream{};
  MOX_ASSERT(deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib starts");
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  MOX_ASSERT(deflate(&stream, Z_FINISH) == Z_STREAM_END, "there is room");
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string zip_of(const std::vector<ZipSample>& members) {
  std::string archive, directory;
  const auto number = [](std::string& to, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i, value >>= 8) to += static_cast<char>(value & 0xff);
  };
  for (const ZipSample& member : members) {
    const std::string packed = !member.packed.empty() ? member.packed
                               : member.deflated      ? deflated(member.content)
                                                      : member.content;
    const uint32_t checksum = crc32(std::as_bytes(std::span(member.content)));
    const size_t place = archive.size();
    const auto common = [&](std::string& to) {
      number(to, 20, 2), number(to, 0, 2), number(to, member.deflated ? 8 : 0, 2), number(to, 0, 4);
      number(to, checksum, 4), number(to, packed.size(), 4);
      number(to, member.content.size() + static_cast<uint64_t>(member.claims_more), 4);
      number(to, member.name.size(), 2), number(to, 0, 2);
    };
    archive += "PK\3\4";
    common(archive);
    archive += member.name + packed;
    directory += "PK\1\2";
    number(directory, 20, 2);
    common(directory);
    number(directory, 0, 10), number(directory, place, 4);
    directory += member.name;
  }
  const size_t begin = archive.size();
  archive += directory + "PK\5\6";
  number(archive, 0, 4), number(archive, members.size(), 2), number(archive, members.size(), 2);
  number(archive, directory.size(), 4), number(archive, begin, 4), number(archive, 0, 2);
  return archive;
}

}  // namespace mox::data
