// The object store of this process: one client, made when it is first needed.
#pragma once

#include <memory>

#include "moxing/file/s3/client.h"

namespace mox::file {

// What mox::init found in the options file.*; names that it leaves empty come from the environment. The next
// call of store_client makes a new client; those that use the former go on.
void set_store_options(const s3::StoreOptions& options);

// Throws ConfigError if the options and the environment make no store.
std::shared_ptr<s3::Client> store_client();

}  // namespace mox::file
