// Any bytes are greetings of strangers, rank 0's invitation and messages of ranks, or nothing. The first line
// is a greeting in each of its places and an invitation; all are messages, and lines that are to be signed.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/job/internal/handshake.h"
#include "runtime/job/internal/signed_lines.h"
#include "runtime/job/internal/stall_cause.h"
#include "runtime/job/internal/watch_message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mox::internal;
  constexpr int kRanks = 4;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view greeting = text.substr(0, text.find('\n'));
  const Hello own{.rank = 1, .nonce = std::string(32, 'a')};
  if (const auto hello = parse_hello(greeting, kRanks))
    MOX_ASSERT(hello->rank > 0 && hello->rank < kRanks && hello_line(*hello).size() <= kLongestGreeting,
               "a greeting is within its bounds");
  MOX_ASSERT(!parse_challenge(greeting, "a secret", own) &&
                 !is_response(greeting, "a secret", own, own.nonce) &&
                 !is_same_proof(greeting, welcome_line(session_key("a secret", own, own.nonce))),
             "nobody proves a secret by chance");
  if (const auto invitation = parse_invitation(greeting))
    MOX_ASSERT(parse_invitation(invitation_line(*invitation))->addresses == invitation->addresses &&
                   invitation->port > 0 && !invitation->addresses.empty() &&
                   invitation->addresses.size() <= kMostAddresses,
               "an invitation says where rank 0 is");
  SignedLines rank_0("a key", true), rank("a key", false);
  for (size_t begin = 0; begin < size;) {
    const size_t end = std::min(text.find('\n', begin), size);
    const std::string_view line = text.substr(begin, end - begin);
    MOX_ASSERT(!rank.read(line), "nobody signs a line by chance");
    MOX_ASSERT(rank.read(rank_0.sign(line)) == line, "what one side has signed the other one reads");
    const WatchMessage message = parse_message(line, kRanks);
    MOX_ASSERT(message.number >= -1 && message.number <= kMostStatus, "a number is within its bounds");
    std::vector<RankStatus> statuses(kRanks);
    if (message.kind == WatchMessage::Kind::kStatus)
      statuses[0] = RankStatus::from_line(message.text, kRanks);
    if (message.kind == WatchMessage::Kind::kStatuses) statuses = parse_statuses(message.text, kRanks);
    MOX_ASSERT(statuses.size() == kRanks && speaker(statuses, 1) < kRanks,
               "each rank says something or nothing");
    if (message.kind == WatchMessage::Kind::kStatus || message.kind == WatchMessage::Kind::kStatuses) {
      const StallCause cause = find_stall_cause(statuses, 1);
      for (const int rank : cause.ranks)
        MOX_ASSERT(rank >= 0 && rank < kRanks, "a cause is one of the ranks");
    }
    begin = end + 1;
  }
  return 0;
}
