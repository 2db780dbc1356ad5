#include "moxing/cli/internal/host_slots.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

#include "moxing/cli/internal/host_index.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/text/utf8.h"

namespace mox::cli {
namespace {

constexpr int kMostSlots = 1'000'000;  // of all hosts together

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > kMostSlots)
    return std::nullopt;
  return number;
}

bool is_ipv6(const std::string& host) {
  in6_addr address{};
  return host.find('\0') == std::string::npos &&
         ::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &address) == 1;
}

// "[::1]:2", "a:2": the host alone, and the number behind it if there is one.
std::optional<int> cut_slots(std::string* host) {
  if (host->starts_with('[') && host->find(']') != std::string::npos) {
    const size_t end = host->find(']');
    const std::string rest = host->substr(end + 1);
    *host = host->substr(1, end - 1);
    if (rest.empty()) return std::nullopt;
    if (const auto slots = rest[0] == ':' ? number_in(rest.substr(1)) : std::nullopt) return slots;
    *host += rest;  // which is no host's name
    return std::nullopt;
  }
  const size_t colon = host->find(':');
  if (colon == std::string::npos || is_ipv6(*host)) return std::nullopt;
  const auto slots = number_in(std::string_view(*host).substr(colon + 1));
  if (slots) host->resize(colon);
  return slots;
}

// "slots = 2" as "slots=2". In one pass: to erase one blank after the other takes a day of a file of blanks.
std::string without_blanks_around_equals(std::string line) {
  const auto is_blank = [](char letter) { return letter == ' ' || letter == '\t'; };
  size_t kept = 0;
  for (const char letter : line) {
    if (letter == '=')
      while (kept > 0 && is_blank(line[kept - 1])) --kept;
    if (!is_blank(letter) || kept == 0 || line[kept - 1] != '=') line[kept++] = letter;
  }
  line.resize(kept);
  return line;
}

HostSlots read_line(const std::string& line, const std::string& where) {
  std::istringstream words(without_blanks_around_equals(line));
  HostSlots entry{"", 1};
  if (!(words >> entry.host)) return entry;
  std::optional<int> slots = cut_slots(&entry.host), most;
  require_host(entry.host, where);
  int number = 0;
  for (std::string word; words >> word; ++number) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (equals == std::string::npos) {
      // Grid Engine: the number, a queue and processors.
      if (const auto given = number == 0 && !slots ? number_in(word) : std::nullopt) {
        slots = given;
        for (int more = 0; more < 2 && words >> word;) ++more;
        continue;
      }
    } else if (const auto value = number_in(std::string_view(word).substr(equals + 1))) {
      const bool is_most = name == "max_slots" || name == "max-slots";
      if (is_most || name == "slots" || name == "cpu" || name == "cpus" || name == "count") {
        (is_most ? most : slots) = value;
        continue;
      }
    }
    throw DataError(fmt::format("{}: expected 'HOST slots=NUMBER' (or HOST:NUMBER), got '{}'", where, word));
  }
  entry.slots = slots.value_or(most.value_or(1));
  if (most && *most < entry.slots)
    throw DataError(
        fmt::format("{}: '{}' has {} slots, more than max_slots={}", where, entry.host, entry.slots, *most));
  return entry;
}

}  // namespace

void require_host(const std::string& host, const std::string& where) {
  // Of a name, or of the user before it.
  const auto is_plain = [](std::string_view part) {
    return !part.empty() && part.front() != '-' && std::ranges::all_of(part, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
             c == '_' || c == '-';
    });
  };
  if (is_loopback(host)) return;
  if (is_ipv6(host))
    throw DataError(fmt::format(
        "{}: Open MPI's mpirun takes no IPv6 addresses, as '{}'; give the host's name (in /etc/hosts, if no "
        "server knows it)",
        where, host));
  const size_t at = host.find('@');
  const std::string_view name = std::string_view(host).substr(at + 1);  // npos + 1: all of it
  if (host.size() > 255 || !is_plain(name) ||
      (at != std::string::npos && !is_plain(std::string_view(host).substr(0, at))))
    throw DataError(fmt::format("{}: '{}' is no name or address of a host", where, host));
}

bool is_loopback(const std::string& host) {
  if (host.find('\0') != std::string::npos) return false;  // the system's functions read to there
  in_addr address{};
  if (::inet_pton(AF_INET, host.c_str(), &address) == 1) return ntohl(address.s_addr) >> 24 == 127;
  return host == "localhost" || host == "::1" || host == "0:0:0:0:0:0:0:1";
}

std::vector<HostSlots> read_hosts(const std::string& path) { return parse_hosts(read_file(path), path); }

std::vector<HostSlots> parse_hosts(std::string text, const std::string& path) {
  text.erase(0, text.size() - without_byte_order_mark(text).size());
  std::vector<HostSlots> hosts;
  // No list has more: growing, it would take thrice as much memory. There are 64 names of one letter, which
  // take two bytes with their line's end, and 4,096 of two at most; the others take four and more.
  const auto ends = static_cast<size_t>(std::ranges::count(text, '\n'));
  const size_t most = std::min({ends + 1, text.size() / 3 + 32, text.size() / 4 + 1088, kMostHosts});
  hosts.reserve(most);
  HostIndex index(most);
  std::istringstream lines(std::move(text));
  int number = 0, total = 0;
  for (std::string line; std::getline(lines, line);) {
    const HostSlots entry = read_line(line.substr(0, line.find('#')), fmt::format("{}:{}", path, ++number));
    if (entry.host.empty()) continue;
    const size_t known = index.find_or_add(
        entry.host, hosts.size(), [&](size_t which) -> const std::string& { return hosts[which].host; });
    if ((total += entry.slots) > kMostSlots)
      throw DataError(fmt::format("{}:{}: a job has at most {} ranks", path, number, kMostSlots));
    if (known < hosts.size()) {
      hosts[known].slots += entry.slots;
    } else if (hosts.size() == kMostHosts) {
      throw DataError(fmt::format("{}:{}: a job has at most {} hosts", path, number, kMostHosts));
    } else {
      hosts.push_back(entry);
    }
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
