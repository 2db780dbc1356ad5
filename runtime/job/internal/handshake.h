// How a rank and rank 0 recognise each other over a connection that anybody may have made: both prove that
// they know the job's secret, and neither sends it.
//
//   rank:    hello RANK NONCE                 (NONCE: 32 hexadecimal digits of its own, drawn anew)
//   rank 0:  proof NONCE HMAC                 HMAC-SHA-256(secret, "rank 0" RANK both nonces)
//   rank:    proof HMAC                       HMAC-SHA-256(secret, "rank" RANK both nonces)
//   rank 0:  welcome HMAC                     HMAC-SHA-256(key, "welcome")
//
// (A challenge and a response each way, ISO/IEC 9798-4.) Lines are read as bytes from strangers: each has its
// one length and alphabet, and whatever else comes is no greeting.
//
// It says who is at the other end, not who sits in the middle and passes all on. So both make a key of what
// they have said, which they do not send either, and sign with it what follows (signed_lines.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mox::internal {

inline constexpr size_t kLongestGreeting = 128;

// 32 hexadecimal digits that nobody can guess. Throws IoError.
std::string random_nonce();

struct Hello {
  int rank = 0;  // in [1, ranks)
  std::string nonce;
};
std::string hello_line(const Hello& hello);
std::optional<Hello> parse_hello(std::string_view line, int ranks);

// Rank 0's answer.
struct Challenge {
  std::string nonce, proof;
};
std::string challenge_line(std::string_view secret, const Hello& hello, const std::string& nonce);
// Nothing if it is not the answer of one who knows the secret.
std::optional<Challenge> parse_challenge(std::string_view line, std::string_view secret, const Hello& hello);

std::string response_line(std::string_view secret, const Hello& hello, const std::string& nonce_of_rank_0);
bool is_response(std::string_view line, std::string_view secret, const Hello& hello,
                 const std::string& nonce_of_rank_0);

// The key of what is said over the connection after it: HMAC-SHA-256(secret, "between" RANK both nonces).
std::string session_key(std::string_view secret, const Hello& hello, const std::string& nonce_of_rank_0);
std::string welcome_line(const std::string& key);

// Takes as long for a wrong one as for a right one.
bool is_same_proof(std::string_view a, std::string_view b);

// More than a host has at which it may be reached.
inline constexpr size_t kMostAddresses = 256;

// Where rank 0 is, in words: "SECRET PORT ADDRESS...". The other ranks are told so by a broadcast of the job.
struct Invitation {
  std::string secret;
  uint16_t port = 0;
  std::vector<std::string> addresses;  // of rank 0's host, IPv4, the loopback first
};
std::string invitation_line(const Invitation& invitation);
// Nothing for another text: one without an address, say, or with too many.
std::optional<Invitation> parse_invitation(std::string_view line);

}  // namespace mox::internal
