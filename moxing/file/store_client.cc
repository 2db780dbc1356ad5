#include "moxing/file/store_client.h"

#include <mutex>

namespace mox::file {
namespace {

struct StoreOfProcess {
  std::mutex mutex;
  s3::StoreOptions options;
  std::shared_ptr<s3::Client> client;
};

StoreOfProcess& store_of_process() {
  static StoreOfProcess store;
  return store;
}

}  // namespace

void set_store_options(const s3::StoreOptions& options) {
  StoreOfProcess& store = store_of_process();
  const std::lock_guard lock(store.mutex);
  store.options = options;
  store.client.reset();
}

std::shared_ptr<s3::Client> store_client() {
  StoreOfProcess& store = store_of_process();
  const std::lock_guard lock(store.mutex);
  if (!store.client) store.client = std::make_shared<s3::Client>(s3::options_from_environment(store.options));
  return store.client;
}

}  // namespace mox::file
