// The lines of two processes that share a key, over a connection that a third one may sit in the middle of:
//
//   PROOF LINE        PROOF: HMAC-SHA-256(key, WHO NUMBER LINE), 64 hexadecimal digits
//
// A line says so who has said it, and as which of his: nobody else can make one, change, repeat or leave one
// out, or send it back to who said it. What is left to the third one is to end the connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mox::internal {

class SignedLines {
 public:
  SignedLines(std::string key, bool is_rank_0) : key_(std::move(key)), is_rank_0_(is_rank_0) {}

  // The next line of this side.
  std::string sign(std::string_view line);
  // What the next line of the other side says, or nothing if this is another one.
  std::optional<std::string> read(std::string_view line);

 private:
  std::string proof(bool of_rank_0, uint64_t number, std::string_view line) const;

  std::string key_;
  bool is_rank_0_;
  uint64_t said_ = 0, heard_ = 0;
};

}  // namespace mox::internal
