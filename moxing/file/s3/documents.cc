#include "moxing/file/s3/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <pugixml.hpp>

#include "moxing/file/s3/etag.h"
#include "moxing/file/s3/object_info.h"
#include "moxing/file/s3/uri.h"
#include "runtime/base/error.h"

namespace mox::file::s3 {
namespace {

bool name_is(const pugi::xml_node& node, std::string_view name) {
  std::string_view full = node.name();  // stores may write a prefix
  const size_t colon = full.find(':');
  if (colon != std::string_view::npos) full.remove_prefix(colon + 1);
  return full == name;
}

pugi::xml_node child_of(const pugi::xml_node& node, std::string_view name) {
  for (const pugi::xml_node& child : node.children())
    if (name_is(child, name)) return child;
  return {};
}

std::string text_of(const pugi::xml_node& node, std::string_view name) {
  return child_of(node, name).text().get();
}

int64_t number_of(const pugi::xml_node& node, std::string_view name) {
  const std::string text = text_of(node, name);
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw DataError(fmt::format("the store's answer has no whole number in <{}>", name));
  return number;
}

int64_t size_in(const pugi::xml_node& node) {
  const int64_t size = number_of(node, "Size");
  if (size > kMostObjectBytes)
    throw DataError(fmt::format("the store's answer has {} bytes in <Size>; an object has at most {}", size,
                                kMostObjectBytes));
  return size;
}

// Whether a listing goes on behind this page. A page that is taken for the last one hides what comes behind
// it, so that a word which is neither is an error, and so is a page that says nothing but where
// the next begins.
bool goes_on(const pugi::xml_node& root, std::initializer_list<std::string_view> beginnings_of_next = {}) {
  const std::string text = text_of(root, "IsTruncated");
  if (text == "true") return true;
  if (text == "false") return false;
  if (!text.empty()) throw DataError("the store's listing has an IsTruncated that is neither true nor false");
  for (const std::string_view next : beginnings_of_next)
    if (!text_of(root, next).empty())
      throw DataError(fmt::format("the store's listing has a {}, but does not say that it goes on", next));
  return false;
}

// Nothing checks the bytes of a listing, so that what can be known of it is looked at. Stores count keys, or
// keys and common prefixes.
void require_its_names(const pugi::xml_node& root, const Listing& listing) {
  if (child_of(root, "KeyCount")) {
    const int64_t count = number_of(root, "KeyCount"), keys = std::ssize(listing.objects),
                  all = keys + std::ssize(listing.prefixes);
    if (count != keys && count != all)
      throw DataError(fmt::format("the store's listing holds {} names and says {}", all, count));
  }
  const auto twice = std::ranges::adjacent_find(listing.objects, {}, &ListedObject::key);
  if (twice != listing.objects.end())
    throw DataError(fmt::format("the store's listing has '{}' twice", twice->key));
  const auto prefix = std::ranges::adjacent_find(listing.prefixes);
  if (prefix != listing.prefixes.end())
    throw DataError(fmt::format("the store's listing has '{}' twice", *prefix));
}

// Of all that is listed; names come in order.
std::string last_name(const Listing& listing) {
  const std::string key = listing.objects.empty() ? "" : listing.objects.back().key;
  const std::string prefix = listing.prefixes.empty() ? "" : listing.prefixes.back();
  return std::max(key, prefix);
}

// Whether an answer has no more tags than stores write, an element in twelve characters (<Key>a</Key>) and
// more: each becomes a node of some seventy bytes.
bool has_few_tags(std::string_view xml) {
  constexpr size_t kFewestCharacters = 8, kSmall = 16 << 10;
  size_t tags = 0;
  for (size_t at = 0; at + 1 < xml.size(); ++at) tags += xml[at] == '<' && xml[at + 1] != '/';
  return tags <= std::max(xml.size(), kSmall) / kFewestCharacters;
}

// A document with its root element, if it is XML at all.
struct Parsed {
  explicit Parsed(std::string_view xml) {
    if (!has_few_tags(xml)) return;
    // A text becomes part of its element, and no node of its own.
    const auto result =
        document.load_buffer(xml.data(), xml.size(),
                             pugi::parse_default | pugi::parse_ws_pcdata_single | pugi::parse_embed_pcdata);
    if (result) root = document.document_element();
  }
  void require_root(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names)
      if (name_is(root, name)) return;
    throw DataError(fmt::format("the store's answer is no <{}>", *names.begin()));
  }
  pugi::xml_document document;
  pugi::xml_node root;
};

// "Thu, 01 Jan 2015 00:00:00 GMT" (RFC 9110, 5.6.7). strptime would read the names in the language of the
// process's locale.
bool read_http_date(const std::string& text, std::tm* parts) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  char month[4] = {};
  if (std::sscanf(text.c_str(), "%*3c, %2d %3c %4d %2d:%2d:%2d", &parts->tm_mday, month, &parts->tm_year,
                  &parts->tm_hour, &parts->tm_min, &parts->tm_sec) != 6)
    return false;
  const size_t at = kMonths.find(month);
  const auto is_within = [](int value, int least, int most) { return least <= value && value <= most; };
  parts->tm_mon = static_cast<int>(at / 3);
  parts->tm_year -= 1900;
  return at != std::string_view::npos && at % 3 == 0 && is_within(parts->tm_mday, 1, 31) &&
         is_within(parts->tm_hour, 0, 23) && is_within(parts->tm_min, 0, 59) &&
         is_within(parts->tm_sec, 0, 60);
}

}  // namespace

std::chrono::system_clock::time_point parse_time(std::string_view text) {
  std::tm parts{};
  const std::string copy(text);
  if (!::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) && !read_http_date(copy, &(parts = {})))
    return {};
  const std::time_t time = ::timegm(&parts);
  // Beyond what the clock's type holds lies nothing that a store has written.
  if (time < 0 || time > 9'000'000'000) return {};
  return std::chrono::system_clock::from_time_t(time);
}

StoreRefusal parse_refusal(std::string_view xml) {
  constexpr size_t kLongest = 64 << 10;  // what is longer is a listing, and need not be read twice
  if (xml.size() > kLongest) return {};
  const Parsed parsed(xml);
  if (!name_is(parsed.root, "Error")) return {};
  return {text_of(parsed.root, "Code"), text_of(parsed.root, "Message"), text_of(parsed.root, "RequestId"),
          text_of(parsed.root, "Region")};
}

Listing parse_listing(std::string_view xml) {
  const Parsed parsed(xml);
  parsed.require_root({"ListBucketResult"});
  const bool encoded = text_of(parsed.root, "EncodingType") == "url";
  const auto name_in = [&](const pugi::xml_node& node, std::string_view name) {
    const std::string text = text_of(node, name);
    return encoded ? percent_decode(text) : text;
  };
  Listing listing;
  for (const pugi::xml_node& child : parsed.root.children()) {
    if (name_is(child, "Contents")) {
      ListedObject object{name_in(child, "Key"), size_in(child), parse_etag_text(text_of(child, "ETag")),
                          parse_time(text_of(child, "LastModified"))};
      if (object.key.empty()) throw DataError("the store's listing has an object without a key");
      listing.objects.push_back(std::move(object));
    } else if (name_is(child, "CommonPrefixes")) {
      listing.prefixes.push_back(name_in(child, "Prefix"));
    }
  }
  require_its_names(parsed.root, listing);
  if (!goes_on(parsed.root, {"NextContinuationToken", "NextMarker"})) return listing;
  listing.next_token = text_of(parsed.root, "NextContinuationToken");
  if (!listing.next_token.empty()) return listing;
  listing.next_marker = name_in(parsed.root, "NextMarker");
  if (listing.next_marker.empty()) listing.next_marker = last_name(listing);
  if (listing.next_marker.empty())
    throw DataError(
        "the store's listing goes on, but it has no NextContinuationToken, no NextMarker and no names");
  return listing;
}

std::string parse_upload_id(std::string_view xml) {
  const Parsed parsed(xml);
  parsed.require_root({"InitiateMultipartUploadResult"});
  std::string id = text_of(parsed.root, "UploadId");
  if (id.empty()) throw DataError("the store's answer has no UploadId");
  return id;
}

std::string parse_etag(std::string_view xml) {
  const Parsed parsed(xml);
  parsed.require_root({"CompleteMultipartUploadResult", "CopyObjectResult", "CopyPartResult"});
  std::string etag = parse_etag_text(text_of(parsed.root, "ETag"));
  if (etag.empty()) throw DataError("the store's answer has no ETag");
  return etag;
}

PartListing parse_parts(std::string_view xml) {
  const Parsed parsed(xml);
  parsed.require_root({"ListPartsResult"});
  PartListing listing;
  for (const pugi::xml_node& child : parsed.root.children()) {
    if (!name_is(child, "Part")) continue;
    const int64_t number = number_of(child, "PartNumber");
    if (number < 1 || number > 10'000) throw DataError("the store's listing has a part whose number is none");
    listing.parts.push_back(
        {static_cast<int>(number), size_in(child), parse_etag_text(text_of(child, "ETag"))});
  }
  if (goes_on(parsed.root)) {
    const int64_t next = number_of(parsed.root, "NextPartNumberMarker");
    if (next < 1 || next > 10'000)
      throw DataError("the store's listing of parts does not say how it goes on");
    listing.next = static_cast<int>(next);
  }
  return listing;
}

UploadListing parse_uploads(std::string_view xml) {
  const Parsed parsed(xml);
  parsed.require_root({"ListMultipartUploadsResult"});
  const bool encoded = text_of(parsed.root, "EncodingType") == "url";
  const auto key_of = [&](const std::string& text) { return encoded ? percent_decode(text) : text; };
  UploadListing listing;
  for (const pugi::xml_node& child : parsed.root.children())
    if (name_is(child, "Upload"))
      listing.uploads.push_back(
          {key_of(text_of(child, "Key")), text_of(child, "UploadId"), text_of(child, "Initiated")});
  if (goes_on(parsed.root)) {
    listing.next_key = key_of(text_of(parsed.root, "NextKeyMarker"));
    listing.next_id = text_of(parsed.root, "NextUploadIdMarker");
    if (listing.next_key.empty())
      throw DataError("the store's listing of uploads does not say how it goes on");
  }
  return listing;
}

std::vector<KeptKey> parse_delete_result(std::string_view xml) {
  const Parsed parsed(xml);
  parsed.require_root({"DeleteResult"});
  std::vector<KeptKey> kept;
  for (const pugi::xml_node& child : parsed.root.children())
    if (name_is(child, "Error"))
      kept.push_back({text_of(child, "Key"), text_of(child, "Code") + ": " + text_of(child, "Message")});
  return kept;
}

std::string complete_document(const std::vector<ListedPart>& parts) {
  std::string text = "<CompleteMultipartUpload>";
  for (const ListedPart& part : parts)
    text += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", part.number,
                        etag_text(part.etag));
  return text + "</CompleteMultipartUpload>";
}

std::string delete_document(const std::vector<std::string>& keys) {
  std::string text = "<Delete><Quiet>true</Quiet>";
  for (const std::string& key : keys) {
    text += "<Object><Key>";
    for (const char c : key) {
      if (c == '&')
        text += "&amp;";
      else if (c == '<')
        text += "&lt;";
      else if (c == '>')
        text += "&gt;";
      else if (static_cast<unsigned char>(c) < 0x20)
        text += fmt::format("&#{};", static_cast<int>(c));
      else
        text += c;
    }
    text += "</Key></Object>";
  }
  return text + "</Delete>";
}

}  // namespace mox::file::s3
