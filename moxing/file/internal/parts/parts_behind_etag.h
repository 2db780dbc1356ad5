// Of which parts an object's ETag was made. It says how many there are; how long each is a store says where
// it is asked for each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "moxing/file/s3/client.h"

namespace mox::file::internal {

// The size of the parts of which an object's ETag was made: 0 for a plain MD5; nothing if the ETag says
// nothing about the content. Of several parts it is a guess, that all but the last are as the first one: to
// ask for each would cost every object as many requests as it has parts. So content that is not what the ETag
// says by the guess may be the object's.
std::optional<int64_t> parts_behind_etag(s3::Client& client, const s3::ObjectName& object,
                                         const s3::ObjectInfo& info, std::stop_token stop);

// For such content: the sizes of all parts, for which the store is asked, if not all but the last have
// `guessed` bytes; empty if it does not say them. Nothing: the guess was right. Throws StoreError where the
// store has no answer.
std::optional<std::vector<int64_t>> other_parts_behind_etag(s3::Client& client, const s3::ObjectName& object,
                                                            const s3::ObjectInfo& info, int64_t guessed,
                                                            std::stop_token stop);

enum class ContentIs {
  kAsSaid,  // by the ETag, or by the checksum
  kAnother,
  kUnknown,  // neither of them says anything of it
};

// The same with the content compared anew, by these sizes or else by the checksum. `read` gives a range of
// it: offset, length.
ContentIs compare_by_other_parts(s3::Client& client, const s3::ObjectName& object, const s3::ObjectInfo& info,
                                 int64_t guessed, const std::function<std::string(int64_t, int64_t)>& read,
                                 std::stop_token stop);

}  // namespace mox::file::internal
