#include "moxing/cli/internal/rank_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::cli {
namespace {

// A host is handed to mpirun in a list that commas and colons divide.
void require_name(const std::string& host, const std::string& where) {
  if (host.empty() || host.front() == '-' || host.find_first_of(",: \t\n") != std::string::npos)
    throw DataError(fmt::format("{}: '{}' is no name or address of a host", where, host));
}

void require_new(std::set<std::string>& known, const std::string& host, const std::string& where) {
  if (!known.insert(host).second)
    throw DataError(fmt::format("{}: the host '{}' is there twice", where, host));
}

}  // namespace

std::vector<HostSlots> read_rank_table(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<HostSlots> hosts;
  std::set<std::string> known;
  try {
    const nlohmann::json table = nlohmann::json::parse(text);
    for (const auto& server : table.at("server_list")) {
      HostSlots entry{server.at("server_id").get<std::string>(),
                      static_cast<int>(server.at("device").size())};
      const std::string where = fmt::format("{}: server {}", path, hosts.size());
      require_name(entry.host, where);
      require_new(known, entry.host, where);
      if (!server.at("device").is_array() || entry.slots == 0)
        throw DataError(fmt::format("{} ('{}') has no list of devices", where, entry.host));
      hosts.push_back(std::move(entry));
    }
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format(
        "'{}' is no rank table (\"server_list\" with \"server_id\" and \"device\"): {}", path, error.what()));
  }
  if (hosts.empty()) throw DataError(fmt::format("the rank table '{}' has no servers", path));
  return hosts;
}

std::vector<HostSlots> read_hosts(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<HostSlots> hosts;
  std::set<std::string> known;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = fmt::format("{}:{}", path, ++number);
    std::istringstream words(line.substr(0, line.find('#')));
    HostSlots entry{"", 1};
    if (!(words >> entry.host)) continue;
    require_name(entry.host, where);
    require_new(known, entry.host, where);
    for (std::string word; words >> word;) {
      const size_t digits = std::string("slots=").size();
      if (!word.starts_with("slots=") || word.size() == digits || word.size() > digits + 6 ||
          word.find_first_not_of("0123456789", digits) != std::string::npos ||
          std::stoi(word.substr(digits)) < 1)
        throw DataError(fmt::format("{}: expected 'HOST slots=NUMBER', got '{}'", where, word));
      entry.slots = std::stoi(word.substr(digits));
    }
    hosts.push_back(std::move(entry));
  }
  if (hosts.empty()) throw DataError(fmt::format("'{}' names no hosts", path));
  return hosts;
}

int total_slots(const std::vector<HostSlots>& hosts) {
  int total = 0;
  for (const HostSlots& entry : hosts) total += entry.slots;
  return total;
}

int ranks_that_fit(int wanted, int slots) {
  for (int ranks = std::min(wanted, slots); ranks > 0; --ranks)
    if (wanted % ranks == 0) return ranks;
  return 0;
}

}  // namespace mox::cli
