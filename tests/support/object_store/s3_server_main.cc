// s3_test_server BUCKET COMMAND...: runs the command with the tests' object store, which its environment
// names, and ends with its status. s3_test_server BUCKET: prints the variables of that environment and serves
// until its input ends.
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/object_store/s3_server.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("s3_test_server BUCKET [COMMAND...]\n", stderr);
    return 2;
  }
  mox::testing_store::S3Server server;
  server.make_bucket(argv[1]);
  const mox::testing_store::Keys keys;
  const std::vector<std::pair<const char*, std::string>> variables = {{"S3_ENDPOINT", server.endpoint()},
                                                                      {"S3_REGION", keys.region},
                                                                      {"ACCESS_KEY_ID", keys.access},
                                                                      {"SECRET_ACCESS_KEY", keys.secret}};
  if (argc == 2) {
    for (const auto& [name, value] : variables) std::printf("export %s='%s'\n", name, value.c_str());
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    return 0;
  }
  for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
  pid_t child = 0;
  int status = 0;
  if (::posix_spawnp(&child, argv[2], nullptr, nullptr, argv + 2, environ) != 0 ||
      ::waitpid(child, &status, 0) != child) {
    std::fprintf(stderr, "cannot run '%s'\n", argv[2]);
    return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
