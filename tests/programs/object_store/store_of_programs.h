// An object store on loopback that the programs of a test find through their environment.
#pragma once

#include <cstdlib>
#include <random>
#include <string>

#include "moxing/file/file.h"
#include "tests/moxing/checkpoint/checkpoint_samples.h"
#include "tests/support/kept_files.h"
#include "tests/support/object_store/fault_proxy.h"
#include "tests/support/object_store/s3_server.h"

namespace mox {

class StoreOfPrograms {
 public:
  StoreOfPrograms() : proxy(server.port()) {
    server.make_bucket("bucket");
    ::setenv("ACCESS_KEY_ID", keys.access.c_str(), 1);
    ::setenv("SECRET_ACCESS_KEY", keys.secret.c_str(), 1);
    ::setenv("S3_ENDPOINT", proxy.endpoint().c_str(), 1);
    ::setenv("S3_REGION", "us-east-1", 1);
  }
  ~StoreOfPrograms() {
    if (keeps_test_files()) keep_objects();
    for (const char* name : {"ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "S3_ENDPOINT", "S3_REGION"})
      ::unsetenv(name);
  }

  const testing_store::Keys keys;
  testing_store::S3Server server;
  testing_store::FaultProxy proxy;

 private:
  void keep_objects() const {
    const std::string directory = fresh_directory("objects_" + std::to_string(server.port()));
    int number = 0;
    for (const std::string& key : server.keys("bucket"))
      file::write(directory + "/" + std::to_string(number++) + "-" + key.substr(key.rfind('/') + 1),
                  *server.content("bucket", key));
  }
};

inline std::string noise(size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (size_t i = 0; i + 8 <= size; i += 8) {
    const uint64_t word = random();
    bytes.replace(i, 8, reinterpret_cast<const char*>(&word), 8);
  }
  return bytes;
}

}  // namespace mox
