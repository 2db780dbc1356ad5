// An object store on loopback that the programs of a test find through their environment.
#pragma once

#include <cstdlib>
#include <string>

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
    for (const char* name : {"ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "S3_ENDPOINT", "S3_REGION"})
      ::unsetenv(name);
  }

  const testing_store::Keys keys;
  testing_store::S3Server server;
  testing_store::FaultProxy proxy;
};

}  // namespace mox
