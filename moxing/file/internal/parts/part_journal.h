// The journal of a file that comes in ranges: "INDEX MD5\n" for each that is there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace mox::file::internal {

// `md5`: 16 bytes.
std::string part_journal_line(int64_t index, const std::string& md5);

// The MD5s by their ranges; of several of one range the last. What is no such line, or the begin of one that
// a crash has cut off, counts for nothing: its range is fetched again.
std::map<int64_t, std::string> parse_part_journal(std::string_view journal);

}  // namespace mox::file::internal
