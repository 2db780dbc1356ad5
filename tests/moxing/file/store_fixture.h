// An object store on loopback with what can go wrong before it, and this process's client of it. With
// MOX_TEST_S3_PORT the store is another server (tests/s3/with_swift), whose keys the environment has: for
// those tests that do not look behind its counter. With MOX_TEST_S3_LISTS=first its listings know the first
// version of their call alone, and give one name a page.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "moxing/file/file.h"
#include "moxing/file/store_client.h"
#include "tests/support/object_store/fault_proxy.h"
#include "tests/support/object_store/s3_server.h"
#include "tests/support/temporary_directory.h"

namespace mox::file {

class StoreFixture {
 public:
  explicit StoreFixture(testing_store::S3Server::Options server = {})
      : server(in_mode(std::move(server))), proxy(other_port() ? other_port() : this->server.port()) {
    if (!other_port()) {
      const testing_store::Keys keys;
      ::setenv("ACCESS_KEY_ID", keys.access.c_str(), 1);
      ::setenv("SECRET_ACCESS_KEY", keys.secret.c_str(), 1);
    }
    this->server.make_bucket("bucket");
    use(options());
    if (other_port()) empty_bucket();
  }
  ~StoreFixture() {
    set_store_options({});
    if (other_port()) return;
    ::unsetenv("ACCESS_KEY_ID");
    ::unsetenv("SECRET_ACCESS_KEY");
  }
  static int other_port() {
    const char* port = std::getenv("MOX_TEST_S3_PORT");
    return port ? std::atoi(port) : 0;
  }

  // As users have them, but for the times: nothing waits long here.
  s3::StoreOptions options() const {
    s3::StoreOptions options;
    options.endpoint = other_port() ? "http://127.0.0.1:" + std::to_string(other_port()) : proxy.endpoint();
    options.region = "us-east-1";
    options.first_delay_s = 0.001;
    options.longest_delay_s = 0.02;
    options.stall_s = 20;  // a machine that is busy is no fault
    options.deadline_s = 60;
    if (other_port()) options.append = s3::StoreOptions::Append::kRewrite;  // they are no OBS
    return options;
  }
  static void use(const s3::StoreOptions& options) { set_store_options(options); }

  testing_store::S3Server server;
  testing_store::FaultProxy proxy;

 private:
  static testing_store::S3Server::Options in_mode(testing_store::S3Server::Options options) {
    if (const char* lists = std::getenv("MOX_TEST_S3_LISTS"); lists && std::string_view(lists) == "first") {
      options.lists_by_first_version = true;
      options.page = 1;
    }
    return options;
  }
  static void empty_bucket() {
    for (const DirectoryEntry& entry : scan_dir("s3://bucket"))
      remove(entry.url + (entry.stat.is_directory ? "/" : ""), entry.stat.is_directory);
  }
};

inline std::string random_bytes(size_t size, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; i += 8) {
    const uint64_t word = random();
    for (size_t j = 0; j < 8 && i + j < size; ++j) bytes[i + j] = static_cast<char>(word >> (8 * j));
  }
  return bytes;
}

}  // namespace mox::file
