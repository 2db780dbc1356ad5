// The rank table of HCCL.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "moxing/cli/internal/host_index.h"
#include "moxing/cli/internal/host_slots.h"
#include "moxing/json/bounded_json.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::cli {
namespace {

// What the values of a table of ranks are taken to need at most: one of nothing but rank_ids, written without
// spaces, 18 times its size, of which it takes 15.
constexpr size_t kMostTimes = 20;

// Tables have numbers as strings, and as numbers.
std::optional<int> number_of(const nlohmann::json& value) {
  int number = -1;
  if (value.is_number_integer()) {
    const auto given = value.get<int64_t>();
    if (given >= 0 && given <= 1'000'000) number = static_cast<int>(given);
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) number = -1;
  }
  return number >= 0 ? std::optional(number) : std::nullopt;
}

void require_complete(const nlohmann::json& table, const std::string& path) {
  const auto status = table.find("status");
  if (status != table.end() && *status != "completed")
    throw FailedPrecondition(fmt::format(
        "the rank table '{}' is not complete: its status is {}. The platform writes it while it starts the "
        "machines; try again when it says \"completed\"",
        path, status->dump()));
  if (table.contains("server_list")) return;
  if (table.contains("rank_list"))
    throw DataError(fmt::format(
        "the rank table '{}' (version {}) lists ranks, but not the hosts that they run on: use --hosts FILE, "
        "or -n {} on this machine alone",
        path, table.value("version", nlohmann::json("unknown")).dump(), table.at("rank_list").size()));
}

// The server of each rank: every rank_id from 0 on once, and those of a server behind each other, which is
// how mpirun places ranks.
std::vector<HostSlots> in_order_of_ranks(const std::map<int, size_t>& server_of,
                                         const std::vector<std::string>& servers, const std::string& path) {
  std::vector<HostSlots> hosts;
  std::vector<bool> is_there(servers.size());
  int expected = 0;
  for (const auto& [rank, server] : server_of) {
    if (rank != expected++)
      throw DataError(
          fmt::format("the rank table '{}' has {} devices, but no rank_id {}: they go from 0 to {}", path,
                      server_of.size(), expected - 1, server_of.size() - 1));
    const std::string& host = servers[server];
    if (!hosts.empty() && hosts.back().host == host) {
      ++hosts.back().slots;
      continue;
    }
    if (is_there[server])
      throw DataError(
          fmt::format("the rank table '{}' gives '{}' rank_id {} apart from its others: number the devices "
                      "of a server one after the other, as mpirun places ranks",
                      path, host, rank));
    is_there[server] = true;
    hosts.push_back({host, 1});
  }
  return hosts;
}

}  // namespace

std::vector<HostSlots> read_rank_table(const std::string& path) {
  return parse_rank_table(read_file(path), path);
}

std::vector<HostSlots> parse_rank_table(const std::string& text, const std::string& path) {
  require_bounded_json(text, path, kMostTimes);
  std::vector<std::string> servers;
  std::map<int, size_t> server_of;
  try {
    const nlohmann::json table = parse_json(text, path);
    require_complete(table, path);
    if (const size_t count = table.at("server_list").size(); count > kMostHosts)
      throw DataError(fmt::format("the rank table '{}' has {} servers: a job has at most {} hosts", path,
                                  count, kMostHosts));
    HostIndex index(table.at("server_list").size());
    for (const auto& server : table.at("server_list")) {
      const std::string where = fmt::format("{}: server {}", path, servers.size());
      const auto host = server.at("server_id").get<std::string>();
      require_host(host, where);
      if (index.find_or_add(host, servers.size(), [&](size_t which) -> const std::string& {
            return servers[which];
          }) < servers.size())
        throw DataError(fmt::format("{}: the host '{}' is there twice", where, host));
      if (!server.at("device").is_array() || server.at("device").empty())
        throw DataError(fmt::format("{} ('{}') has no list of devices", where, host));
      for (const auto& device : server.at("device")) {
        const auto rank = number_of(device.at("rank_id"));
        if (!rank)
          throw DataError(fmt::format("{} ('{}'): the rank_id {} is no number from 0 on", where, host,
                                      device.at("rank_id").dump()));
        if (!server_of.emplace(*rank, servers.size()).second)
          throw DataError(fmt::format("{} ('{}'): the rank_id {} is there twice", where, host, *rank));
      }
      servers.push_back(host);
    }
    if (const auto count = table.find("server_count");
        count != table.end() && number_of(*count) != static_cast<int>(servers.size()))
      throw DataError(
          fmt::format("the rank table '{}' is not complete: server_count is {}, but it lists {} server{}",
                      path, count->dump(), servers.size(), servers.size() == 1 ? "" : "s"));
  } catch (const nlohmann::json::exception& error) {
    throw DataError(
        fmt::format("'{}' is no rank table (\"server_list\" with \"server_id\" and \"device\", each with its "
                    "\"rank_id\"): {}",
                    path, error.what()));
  }
  if (servers.empty()) throw DataError(fmt::format("the rank table '{}' has no servers", path));
  return in_order_of_ranks(server_of, servers, path);
}

}  // namespace mox::cli
