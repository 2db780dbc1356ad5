// Listings of objects, page by page.
#include <fmt/format.h>

#include <future>
#include <memory>
#include <set>
#include <utility>

#include "moxing/file/s3/internal/call.h"
#include "runtime/base/error.h"

namespace mox::file::s3 {
namespace {

// In a row. A store that passes over what was removed gives a few; one that gives ever more never ends.
constexpr int kMostEmptyPages = 1000;

}  // namespace

// OBS has the first version of the call alone, and names no encoding of keys.
Client::Call Client::page_call(const ObjectName& prefix, const std::string& delimiter,
                               const Listing* before) const {
  const bool obs = is_obs(prefix.scheme), first_version = obs || (before && before->next_token.empty());
  Call call{.operation = first_version ? "ListObjects" : "ListObjectsV2", .method = "GET", .object = prefix};
  call.object.key.clear();
  call.query = {{"prefix", prefix.key}};
  if (!first_version) call.query.emplace_back("list-type", "2");
  if (!obs) call.query.emplace_back("encoding-type", "url");
  if (!delimiter.empty()) call.query.emplace_back("delimiter", delimiter);
  if (before && first_version) call.query.emplace_back("marker", before->next_marker);
  if (before && !first_version) call.query.emplace_back("continuation-token", before->next_token);
  return call;
}

Listing Client::list_some(const ObjectName& prefix, const std::string& delimiter, int most,
                          std::stop_token stop) {
  Call call = page_call(prefix, delimiter, nullptr);
  call.query.emplace_back("max-keys", std::to_string(most));
  return read_document(call, send(call, stop), parse_listing);
}

void Client::list(const ObjectName& prefix, const std::string& delimiter,
                  const std::function<void(Listing&)>& take_page, std::stop_token stop) {
  std::set<std::string> seen;
  Call call = page_call(prefix, delimiter, nullptr);
  std::optional<HttpAttempt> begun;
  for (int empty_pages = 0;;) {
    Listing page = read_document(call, send(call, stop, std::exchange(begun, std::nullopt)), parse_listing);
    const std::string& next = page.next_token.empty() ? page.next_marker : page.next_token;
    if (next.empty()) return take_page(page);
    if (!seen.insert(next).second)
      throw DataError(fmt::format("the store's listing of '{}' goes round in a circle", prefix.shown()));
    empty_pages = page.objects.empty() && page.prefixes.empty() ? empty_pages + 1 : 0;
    if (empty_pages == kMostEmptyPages)
      throw DataError(
          fmt::format("the store's listing of '{}' has {} pages in a row without a name, and says "
                      "that it goes on: look with another client whether the store is sound",
                      prefix.shown(), empty_pages));
    // The next page travels while this one is taken.
    call = page_call(prefix, delimiter, &page);
    const auto arrival = std::make_shared<std::promise<HttpAttempt>>();
    std::future<HttpAttempt> arriving = arrival->get_future();
    begin(
        call, [arrival](HttpAttempt attempt) { arrival->set_value(std::move(attempt)); }, stop);
    take_page(page);
    begun = arriving.get();
  }
}

}  // namespace mox::file::s3
