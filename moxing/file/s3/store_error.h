// What a store has refused.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/error.h"

namespace mox::file::s3 {

// Its text names operation, object, status, code, request id and attempt. What is not there is
// a NotFound instead.
class StoreError : public IoError {
 public:
  StoreError(const std::string& text, int status, std::string code)
      : IoError(text), status_(status), code_(std::move(code)) {}
  int status() const { return status_; }             // of HTTP; 0: no whole answer came
  const std::string& code() const { return code_; }  // of the store: "AccessDenied"

 private:
  int status_;
  std::string code_;
};

// The status of a StoreError about an object that is not the one that was opened any more.
inline constexpr int kChangedStatus = 412;

// The code of a StoreError about an answer that was longer than anybody wanted it.
inline constexpr const char* kTooLongCode = "AnswerTooLong";

// Whether the store had no answer, or said that it is not well, in all attempts: what its other objects would
// meet as well.
bool is_away(const StoreError& error);

// An object had the ETag `before` when it was first looked at, and has `now` ("": none is given). `shown`
// names it.
StoreError changed_object(const std::string& shown, const std::string& before, const std::string& now);
// The same of one that has another size, and no other ETag.
StoreError changed_size(const std::string& shown, int64_t before, int64_t now);

// A transfer was ended because its caller wants no more of it.
class Cancelled : public IoError {
 public:
  using IoError::IoError;
};

}  // namespace mox::file::s3
