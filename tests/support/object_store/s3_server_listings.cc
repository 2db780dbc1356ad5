// Listings of the tests' object store, page by page.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tests/support/object_store/s3_server.h"

namespace mox::testing_store {
namespace {

// As S3 encodes names in listings: a space is "+".
std::string encode_listed(const std::string& name) {
  std::string out = encode_percent(name, true);
  for (size_t at = out.find("%20"); at != std::string::npos; at = out.find("%20", at))
    out.replace(at, 3, "+");
  return out;
}

// Where a listing goes on. As a store's, these are not to be made up: one that a flipped bit has changed
// would skip names, and the client could not know.
std::string token_after(const std::string& name) { return hex_of(name) + hex_of(md5_of(name)).substr(0, 16); }
std::optional<std::string> name_of_token(const std::string& token) {
  if (token.size() < 16) return std::nullopt;
  std::string name = bytes_of_hex(token.substr(0, token.size() - 16));
  if (token_after(name) != token) return std::nullopt;
  return name;
}

// What stands for the key and its like, if anything does.
std::optional<std::string> common_prefix_of(const std::string& key, const std::string& prefix,
                                            const std::string& delimiter) {
  const size_t at = delimiter.empty() ? std::string::npos : key.find(delimiter, prefix.size());
  if (at == std::string::npos) return std::nullopt;
  return key.substr(0, at + delimiter.size());
}

std::string contents(const std::string& name, std::time_t mtime, const std::string& etag, size_t size) {
  return "<Contents>" + element("Key", name) + element("LastModified", iso_time(mtime)) +
         element("ETag", etag) + element("Size", std::to_string(size)) + "</Contents>";
}

}  // namespace

Answer S3Server::list_objects(const Call& call) {
  count(has(call.query, "list-type") ? "ListObjectsV2" : "ListObjects");
  if (options_.refuses_listings) return refusal(403, "AccessDenied");
  const std::string prefix = get(call.query, "prefix"), delimiter = get(call.query, "delimiter");
  const bool encodes = !options_.lists_by_first_version && get(call.query, "encoding-type") == "url";
  const auto shown = [&](const std::string& name) { return encodes ? encode_listed(name) : name; };
  int most = options_.page;
  if (has(call.query, "max-keys")) most = std::min(most, std::atoi(get(call.query, "max-keys").c_str()));
  // The last name of the page before. Other tools ask by the first version of this call.
  const bool second_version = !options_.lists_by_first_version && get(call.query, "list-type") == "2";
  std::string after = get(call.query, "marker");
  if (second_version && has(call.query, "continuation-token")) {
    const std::optional<std::string> name = name_of_token(get(call.query, "continuation-token"));
    if (!name) return refusal(400, "InvalidArgument");
    after = *name;
  }

  std::string content;
  std::string last;
  int listed = 0;
  bool more = false;
  const auto& objects = buckets_[call.bucket];
  // Those of a prefix lie side by side; what a common prefix of the page before stands for is passed over.
  for (auto at = objects.lower_bound(std::max(prefix, after)); at != objects.end(); ++at) {
    const auto& [key, object] = *at;
    if (!key.starts_with(prefix)) {
      if (key > prefix) break;
      continue;
    }
    const std::optional<std::string> common = common_prefix_of(key, prefix, delimiter);
    const std::string name = common.value_or(key);
    if (!after.empty() && name <= after) continue;
    if (common && name == last) continue;
    if (listed == most) {
      more = true;
      break;
    }
    ++listed;
    last = name;
    if (common)
      content += "<CommonPrefixes>" + element("Prefix", shown(name)) + "</CommonPrefixes>";
    else
      content += contents(shown(name), object.mtime,
                          written(options_.lists_other_etags ? "0" + object.etag : object.etag),
                          object.content->size());
  }
  std::string head = element("Name", call.bucket) + element("Prefix", shown(prefix)) +
                     element("IsTruncated", more ? "true" : "false");
  if (second_version) head += element("KeyCount", std::to_string(listed));
  if (encodes) head += element("EncodingType", "url");
  if (more && second_version) head += element("NextContinuationToken", token_after(last));
  // As Amazon: without a delimiter the last key says it.
  if (more && !second_version && !delimiter.empty()) head += element("NextMarker", shown(last));
  return {.body =
              "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
              "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" +
              head + content + "</ListBucketResult>"};
}

Answer S3Server::list_uploads(const Call& call) {
  count("ListMultipartUploads");
  if (options_.refuses_upload_listings) return refusal(501, "NotImplemented");
  const std::string prefix = get(call.query, "prefix");
  const bool encodes = !options_.lists_by_first_version && get(call.query, "encoding-type") == "url";
  const auto shown = [&](const std::string& name) { return encodes ? encode_listed(name) : name; };
  const std::pair<std::string, std::string> marker{get(call.query, "key-marker"),
                                                   get(call.query, "upload-id-marker")};
  std::vector<std::pair<std::string, std::string>> all;  // key, id
  for (const auto& [id, upload] : uploads_)
    if (upload.bucket == call.bucket && upload.key.starts_with(prefix)) all.emplace_back(upload.key, id);
  std::sort(all.begin(), all.end());
  std::string content;
  int listed = 0;
  bool more = false;
  std::pair<std::string, std::string> last;
  for (const auto& one : all) {
    if (!marker.first.empty() && one <= marker) continue;
    if (listed == options_.page) {
      more = true;
      break;
    }
    ++listed;
    last = one;
    content += "<Upload>" + element("Key", shown(one.first)) + element("UploadId", one.second) +
               element("Initiated", iso_time(uploads_[one.second].initiated)) + "</Upload>";
  }
  std::string head =
      (encodes ? element("EncodingType", "url") : "") + element("IsTruncated", more ? "true" : "false");
  if (more) head += element("NextKeyMarker", shown(last.first)) + element("NextUploadIdMarker", last.second);
  return {.body = "<ListMultipartUploadsResult>" + head + content + "</ListMultipartUploadsResult>"};
}

Answer S3Server::list_parts(const Call& call) {
  count("ListParts");
  const Upload& upload = uploads_[get(call.query, "uploadId")];
  const int marker = std::atoi(get(call.query, "part-number-marker").c_str());
  std::string content;
  int listed = 0, last = 0;
  bool more = false;
  for (const auto& [number, part] : upload.parts) {
    if (number <= marker) continue;
    if (listed == options_.page) {
      more = true;
      break;
    }
    ++listed;
    last = number;
    content += "<Part>" + element("PartNumber", std::to_string(number)) +
               element("ETag", written(part.etag)) + element("Size", std::to_string(part.content->size())) +
               "</Part>";
  }
  std::string head = element("IsTruncated", more ? "true" : "false");
  if (more) head += element("NextPartNumberMarker", std::to_string(last));
  return {.body = "<ListPartsResult>" + head + content + "</ListPartsResult>"};
}

}  // namespace mox::testing_store
