// s3_test_server BUCKET [PORT]: the tests' object store as a program. Prints its port and serves until its
// input ends.
#include <cstdio>
#include <cstdlib>

#include "tests/support/object_store/s3_server.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  mox::testing_store::S3Server::Options options;
  if (argc > 2) options.port = std::atoi(argv[2]);
  mox::testing_store::S3Server server(options);
  server.make_bucket(argv[1]);
  std::printf("%d\n", server.port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}
