#include "runtime/job/internal/signed_lines.h"

#include <fmt/format.h>

#include "runtime/base/file.h"
#include "runtime/job/internal/handshake.h"

namespace mox::internal {

std::string SignedLines::proof(bool of_rank_0, uint64_t number, std::string_view line) const {
  return hmac_sha256(key_, fmt::format("{} says {} {}", of_rank_0 ? "rank 0" : "rank", number, line));
}

std::string SignedLines::sign(std::string_view line) {
  return fmt::format("{} {}", proof(is_rank_0_, said_++, line), line);
}

std::optional<std::string> SignedLines::read(std::string_view line) {
  const std::string_view given = line.substr(0, line.find(' '));
  if (given.size() == line.size()) return std::nullopt;
  const std::string_view text = line.substr(given.size() + 1);
  if (!is_same_proof(given, proof(!is_rank_0_, heard_, text))) return std::nullopt;
  ++heard_;
  return std::string(text);
}

}  // namespace mox::internal
