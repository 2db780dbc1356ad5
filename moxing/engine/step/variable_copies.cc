#include "moxing/engine/step/variable_copies.h"

#include <cstring>

#include "runtime/base/error.h"

namespace mox::internal {
namespace {

void copy_value(const Array& from, Array& to) { std::memcpy(to.data(), from.data(), from.bytes()); }

}  // namespace

UpdateScheme update_scheme_from_string(std::string_view name) {
  if (name == "replicated_host") return UpdateScheme::kReplicatedHost;
  if (name == "replicated") return UpdateScheme::kReplicated;
  MOX_ASSERT(name == "parameter_server", "the option has one of three values");
  return UpdateScheme::kParameterServer;
}

Array VariableCopies::of_lane(int lane, std::string_view name) {
  if (shares_host(lane)) return store_.get(name);
  auto& copies = copies_[static_cast<size_t>(lane)];
  auto found = copies.find(name);
  if (found == copies.end()) found = copies.emplace(name, store_.get(name).clone()).first;
  return found->second;
}

void VariableCopies::pull(int lane) {
  if (scheme_ != UpdateScheme::kParameterServer) return;
  for (auto& [name, copy] : copies_[static_cast<size_t>(lane)]) copy_value(store_.get(name), copy);
}

void VariableCopies::refresh(std::string_view name) {
  for (auto& copies : copies_)
    if (auto found = copies.find(name); found != copies.end()) copy_value(store_.get(name), found->second);
}

}  // namespace mox::internal
