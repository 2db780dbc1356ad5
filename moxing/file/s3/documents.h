// The XML documents that stores answer with. Readers of foreign bytes: any text gives a value or a DataError.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mox::file::s3 {

struct StoreRefusal {
  std::string code, message, request_id, region;  // what is not said is empty
};
// Of a document <Error>; all empty for anything else, as what a proxy says is no XML at all.
StoreRefusal parse_refusal(std::string_view xml);

struct ListedObject {
  std::string key;
  int64_t size = 0;
  std::string etag;  // as etag.h says
  std::chrono::system_clock::time_point mtime{};
};
struct Listing {
  std::vector<ListedObject> objects;
  std::vector<std::string> prefixes;  // common ones, each with its slash
  // Where the next page begins, of ListObjectsV2 or of ListObjects, which is what a store speaks that gives
  // no token: behind this name. Both empty: this is the last page.
  std::string next_token, next_marker;
};
// <ListBucketResult>. DataError also for a page that says it is not the last and not how to go on, that holds
// another number of names than it says, or one name twice.
Listing parse_listing(std::string_view xml);

// <InitiateMultipartUploadResult>: the id of the upload.
std::string parse_upload_id(std::string_view xml);

// <CompleteMultipartUploadResult>, <CopyObjectResult> or <CopyPartResult>: the ETag, as etag.h says. Such an
// answer has status 200 even if it is an <Error>; see parse_refusal.
std::string parse_etag(std::string_view xml);

struct ListedPart {
  int number = 0;
  int64_t size = 0;
  std::string etag;
};
struct PartListing {
  std::vector<ListedPart> parts;
  int next = 0;  // part-number-marker of the next page; 0: this is the last one
};
PartListing parse_parts(std::string_view xml);

struct ListedUpload {
  std::string key, id;
  std::string initiated;  // as the store writes it; later ones compare greater
};
struct UploadListing {
  std::vector<ListedUpload> uploads;
  std::string next_key, next_id;  // empty: this is the last page
};
UploadListing parse_uploads(std::string_view xml);

// <DeleteResult>: the keys that stay, and why.
struct KeptKey {
  std::string key, why;
};
std::vector<KeptKey> parse_delete_result(std::string_view xml);

// Bodies of requests.
std::string complete_document(const std::vector<ListedPart>& parts);
std::string delete_document(const std::vector<std::string>& keys);

// "2026-01-31T12:00:00.000Z" and "Sat, 31 Jan 2026 12:00:00 GMT"; the epoch for anything else.
std::chrono::system_clock::time_point parse_time(std::string_view text);

}  // namespace mox::file::s3
