// Root may read every file. What refuses to is tested as a user who owns nothing.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace mox {

// The text of the error that `function` throws in a child process without privileges; "" if it throws none.
template <typename Type, typename Function>
std::string message_without_privileges(Function&& function) {
  constexpr uid_t kNobody = 65534;
  int ends[2];
  if (::pipe(ends) != 0) {
    ADD_FAILURE() << "no pipe";
    return "";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text;
    if (::getuid() == 0 &&
        (::setresgid(kNobody, kNobody, kNobody) != 0 || ::setresuid(kNobody, kNobody, kNobody) != 0)) {
      text = "the child process keeps its privileges";
    } else {
      try {
        function();
      } catch (const Type& error) {
        text = error.what();
      }
    }
    const ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t got; (got = ::read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(got));
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return text;
}

}  // namespace mox
