// Uploads in parts.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "moxing/file/s3/digest.h"
#include "moxing/file/s3/etag.h"
#include "moxing/file/s3/internal/call.h"
#include "moxing/file/s3/store_error.h"
#include "moxing/file/s3/uri.h"

namespace mox::file::s3 {

std::string Client::create_upload(const ObjectName& object, int64_t part_size, std::stop_token stop) {
  Call call{
      .operation = "CreateMultipartUpload", .method = "POST", .object = object, .query = {{"uploads", ""}}};
  call.headers = {{"content-type", "application/octet-stream"},
                  {"x-amz-meta-mox-part-size", std::to_string(part_size)}};
  return read_document(call, send(call, stop), parse_upload_id);
}

Part Client::upload_part(const ObjectName& object, const std::string& upload, int number,
                         std::string_view body, const std::string& md5, std::stop_token stop) {
  Call call{.operation = "UploadPart", .method = "PUT", .object = object, .body = body};
  call.query = {{"partNumber", std::to_string(number)}, {"uploadId", upload}};
  call.headers = {{"content-md5", base64(md5)}};
  constexpr int kMostSendings = 3;
  for (int sending = 1;; ++sending) {
    const HttpResponse response = send(call, stop);
    Part part{number, std::ssize(body), md5, parse_etag_text(response.header("etag")),
              is_encrypted(response)};
    if (part.etag.empty())
      throw DataError(fmt::format("the store gives no ETag to part {} of '{}'", number, object.shown()));
    if (!is_md5(part.etag) || part.etag == hex(md5) || part.encrypted) return part;
    if (sending == kMostSendings)
      throw DataError(
          fmt::format("the store says that part {} of '{}' has arrived with the MD5 {}; it was sent with {}",
                      number, object.shown(), part.etag, hex(md5)));
  }
}

Part Client::copy_part(const ObjectName& from, const std::string& etag, int64_t offset, int64_t length,
                       const ObjectName& to, const std::string& upload, int number, std::stop_token stop) {
  Call call{.operation = "UploadPartCopy", .method = "PUT", .object = to};
  call.query = {{"partNumber", std::to_string(number)}, {"uploadId", upload}};
  call.headers = {{"x-amz-copy-source", "/" + from.bucket + "/" + percent_encode(from.key, true)},
                  {"x-amz-copy-source-range", fmt::format("bytes={}-{}", offset, offset + length - 1)}};
  if (is_condition(etag)) call.headers.emplace_back("x-amz-copy-source-if-match", etag_text(etag));
  return {number, length, {}, read_document(call, send(call, stop), parse_etag)};
}

void Client::complete(const ObjectName& object, const std::string& upload, const std::vector<Part>& parts,
                      std::stop_token stop) {
  std::vector<ListedPart> listed;
  std::vector<std::string> etags;
  int64_t size = 0;
  bool comparable = true;
  for (const Part& part : parts) {
    listed.push_back({part.number, part.size, part.etag});
    size += part.size;
    comparable = comparable && is_md5(part.etag) && !part.encrypted;
    etags.push_back(from_hex(part.etag));
  }
  const std::string expected = comparable ? etag_of_parts(etags) : "";
  const auto is_made = [&] {
    const auto found = head(object, stop);
    return found && found->size == size && (expected.empty() ? false : found->etag == expected);
  };

  const std::string document = complete_document(listed);
  Call call{.operation = "CompleteMultipartUpload",
            .method = "POST",
            .object = object,
            .query = {{"uploadId", upload}}};
  call.headers = {{"content-type", "application/xml"}};
  call.body = document;
  std::string etag;
  bool encrypted = false;
  try {
    const HttpResponse response = send(call, stop);
    encrypted = is_encrypted(response);
    etag = read_document(call, response, parse_etag);
  } catch (const StoreError& error) {
    // An answer that was lost: the upload is gone because it is complete.
    if (error.code() == "NoSuchUpload" && is_made()) return;
    throw;
  }
  // Some stores have ETags of another kind for objects of parts; those that look like S3's must be right.
  const bool same_kind = !expected.empty() && !encrypted && etag.size() == expected.size() &&
                         etag.find('-') == expected.find('-');
  if (same_kind && etag != expected && !is_made())
    throw DataError(fmt::format("the store says that '{}' was made with the ETag {}; its parts give {}",
                                object.shown(), etag, expected));
}

void Client::abort(const ObjectName& object, const std::string& upload) {
  try {
    send({.operation = "AbortMultipartUpload",
          .method = "DELETE",
          .object = object,
          .query = {{"uploadId", upload}}},
         {});
  } catch (const NotFound&) {
  } catch (const StoreError& error) {
    if (error.code() != "NoSuchUpload") throw;
  }
}

std::vector<ListedPart> Client::parts_of(const ObjectName& object, const std::string& upload,
                                         std::stop_token stop) {
  std::vector<ListedPart> parts;
  for (int marker = 0;;) {
    Call call{.operation = "ListParts", .method = "GET", .object = object, .query = {{"uploadId", upload}}};
    if (marker) call.query.emplace_back("part-number-marker", std::to_string(marker));
    PartListing page = read_document(call, send(call, stop), parse_parts);
    parts.insert(parts.end(), page.parts.begin(), page.parts.end());
    if (!page.next) return parts;
    if (page.next <= marker)
      throw DataError(fmt::format("the listing of parts of '{}' goes round in a circle", object.shown()));
    marker = page.next;
  }
}

std::vector<ListedUpload> Client::uploads_of(const ObjectName& object, std::stop_token stop) {
  std::vector<ListedUpload> found;
  std::string key_marker, id_marker;
  std::set<std::pair<std::string, std::string>> seen;
  for (;;) {
    Call call{.operation = "ListMultipartUploads", .method = "GET", .object = object};
    call.object.key.clear();
    call.query = {{"uploads", ""}, {"prefix", object.key}};
    if (!is_obs(object.scheme)) call.query.emplace_back("encoding-type", "url");
    if (!key_marker.empty()) {
      call.query.emplace_back("key-marker", key_marker);
      if (!id_marker.empty()) call.query.emplace_back("upload-id-marker", id_marker);
    }
    UploadListing page = read_document(call, send(call, stop), parse_uploads);
    for (ListedUpload& upload : page.uploads)
      if (upload.key == object.key) found.push_back(std::move(upload));
    // Keys come in order: those of this name are the first that begin with it.
    if (page.next_key.empty() || page.next_key > object.key) return found;
    if (!seen.insert({page.next_key, page.next_id}).second)
      throw DataError(fmt::format("the listing of uploads of '{}' goes round in a circle", object.shown()));
    key_marker = page.next_key;
    id_marker = page.next_id;
  }
}

}  // namespace mox::file::s3
