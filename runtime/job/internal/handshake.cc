#include "runtime/job/internal/handshake.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::internal {
namespace {

constexpr size_t kNonceDigits = 32, kProofDigits = 64;
constexpr std::string_view kHello = "hello ", kProof = "proof ";

bool is_hexadecimal(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string proof(std::string_view secret, const char* who, const Hello& hello, std::string_view nonce) {
  return hmac_sha256(secret, fmt::format("{} {} {} {}", who, hello.rank, hello.nonce, nonce));
}
std::string proof_of_rank_0(std::string_view secret, const Hello& hello, std::string_view nonce) {
  return proof(secret, "rank 0 to", hello, nonce);
}
std::string proof_of_rank(std::string_view secret, const Hello& hello, std::string_view nonce) {
  return proof(secret, "to rank 0 from", hello, nonce);
}

}  // namespace

std::string random_nonce() {
  uint64_t numbers[2];
  if (getrandom(numbers, sizeof numbers, 0) != sizeof numbers)
    throw IoError(fmt::format("the system gives no random numbers: {}", std::strerror(errno)));
  return fmt::format("{:016x}{:016x}", numbers[0], numbers[1]);
}

std::string hello_line(const Hello& hello) { return fmt::format("{}{} {}", kHello, hello.rank, hello.nonce); }

std::optional<Hello> parse_hello(std::string_view line, int ranks) {
  if (!line.starts_with(kHello)) return std::nullopt;
  line.remove_prefix(kHello.size());
  Hello hello;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), hello.rank);
  if (error != std::errc() || hello.rank < 1 || hello.rank >= ranks) return std::nullopt;
  line.remove_prefix(end - line.data());
  if (!line.starts_with(' ') || !is_hexadecimal(line.substr(1), kNonceDigits)) return std::nullopt;
  hello.nonce = line.substr(1);
  return hello;
}

std::string challenge_line(std::string_view secret, const Hello& hello, const std::string& nonce) {
  return fmt::format("{}{} {}", kProof, nonce, proof_of_rank_0(secret, hello, nonce));
}

std::optional<Challenge> parse_challenge(std::string_view line, std::string_view secret, const Hello& hello) {
  if (!line.starts_with(kProof) || line.size() != kProof.size() + kNonceDigits + 1 + kProofDigits)
    return std::nullopt;
  line.remove_prefix(kProof.size());
  const std::string_view nonce = line.substr(0, kNonceDigits), given = line.substr(kNonceDigits + 1);
  if (!is_hexadecimal(nonce, kNonceDigits) || line[kNonceDigits] != ' ' ||
      !is_same_proof(given, proof_of_rank_0(secret, hello, nonce)))
    return std::nullopt;
  return Challenge{std::string(nonce), std::string(given)};
}

std::string response_line(std::string_view secret, const Hello& hello, const std::string& nonce_of_rank_0) {
  return std::string(kProof) + proof_of_rank(secret, hello, nonce_of_rank_0);
}

bool is_response(std::string_view line, std::string_view secret, const Hello& hello,
                 const std::string& nonce_of_rank_0) {
  return line.starts_with(kProof) &&
         is_same_proof(line.substr(kProof.size()), proof_of_rank(secret, hello, nonce_of_rank_0));
}

std::string session_key(std::string_view secret, const Hello& hello, const std::string& nonce_of_rank_0) {
  return proof(secret, "between rank 0 and", hello, nonce_of_rank_0);
}

std::string welcome_line(const std::string& key) {
  return fmt::format("welcome {}", hmac_sha256(key, "welcome"));
}

bool is_same_proof(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

std::string invitation_line(const Invitation& invitation) {
  return fmt::format("{} {} {}", invitation.secret, invitation.port, fmt::join(invitation.addresses, " "));
}

std::optional<Invitation> parse_invitation(std::string_view line) {
  const auto next_word = [&] {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    return word;
  };
  Invitation invitation{.secret = std::string(next_word()), .addresses = {}};
  const std::string_view port = next_word();
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), invitation.port);
  if (!is_hexadecimal(invitation.secret, kNonceDigits) || error != std::errc() ||
      end != port.data() + port.size() || invitation.port == 0)
    return std::nullopt;
  while (!line.empty()) {
    in_addr binary{};
    if (invitation.addresses.size() == kMostAddresses ||
        inet_pton(AF_INET, invitation.addresses.emplace_back(next_word()).c_str(), &binary) != 1)
      return std::nullopt;
  }
  if (invitation.addresses.empty()) return std::nullopt;
  return invitation;
}

}  // namespace mox::internal
