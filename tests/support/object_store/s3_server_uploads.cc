// Uploads in parts of the tests' object store.
#include <fmt/format.h>

#include <numeric>
#include <pugixml.hpp>
#include <utility>

#include "tests/support/object_store/s3_server.h"

namespace mox::testing_store {

void S3Server::set_meets_copy_conditions(bool meets) {
  const std::lock_guard lock(mutex_);
  options_.meets_copy_conditions = meets;
}

void S3Server::set_refuses_upload_listings(bool refuses) {
  const std::lock_guard lock(mutex_);
  options_.refuses_upload_listings = refuses;
}
void S3Server::set_tells_first_part_alone(bool first) {
  const std::lock_guard lock(mutex_);
  options_.tells_first_part_alone = first;
}

std::shared_ptr<const std::string> S3Server::part_of(const Object& object, int number) const {
  if (number == 1 && object.parts.empty()) return object.content;
  if (number < 1 || std::cmp_greater(number, object.parts.size())) return nullptr;
  if (number > 1 && options_.tells_first_part_alone) return nullptr;
  const auto part = object.parts.begin() + (number - 1);
  const size_t offset = std::accumulate(object.parts.begin(), part, size_t{0});
  return std::make_shared<const std::string>(object.content->substr(offset, *part));
}

Answer S3Server::upload_call(const Call& call) {
  const std::string& method = call.request.method;
  if (method == "POST" && has(call.query, "uploads")) {
    count("CreateMultipartUpload");
    const std::string id = fmt::format("upload{:06}", next_id_++);
    uploads_[id] = {call.bucket, call.key, metadata_of(call), std::time(nullptr) + options_.clock_skew_s, {}};
    return {.body = "<InitiateMultipartUploadResult>" + element("UploadId", id) +
                    "</InitiateMultipartUploadResult>"};
  }
  const auto found = uploads_.find(get(call.query, "uploadId"));
  if (found == uploads_.end() || found->second.key != call.key || found->second.bucket != call.bucket)
    return refusal(404, "NoSuchUpload");
  if (method == "GET") return list_parts(call);
  if (method == "POST") return complete(call);
  if (method == "DELETE") {
    count("AbortMultipartUpload");
    uploads_.erase(found);
    return {.status = 204};
  }
  const int number = std::atoi(get(call.query, "partNumber").c_str());
  if (method != "PUT" || number < 1 || number > 10'000) return refusal(400, "InvalidArgument");
  if (!call.header("x-amz-copy-source").empty()) return copy_object(call, &found->second);
  count("UploadPart", static_cast<int64_t>(call.request.body.size()));
  Object part = made_of(std::string(call.request.body), call.body_md5, call);
  Answer answer;
  answer.headers = {{"ETag", written(part.etag)}};
  found->second.parts[number] = std::move(part);
  return answer;
}

Answer S3Server::complete(const Call& call) {
  count("CompleteMultipartUpload");
  const std::string id = get(call.query, "uploadId");
  const Upload& upload = uploads_[id];
  pugi::xml_document document;
  if (!document.load_buffer(call.request.body.data(), call.request.body.size()))
    return refusal(400, "MalformedXML");
  std::string content, md5s;
  int last = 0;
  std::vector<size_t> sizes;
  for (const pugi::xml_node& listed : document.child("CompleteMultipartUpload").children("Part")) {
    const int number = listed.child("PartNumber").text().as_int();
    const auto part = upload.parts.find(number);
    const std::string_view etag = listed.child_value("ETag");  // as it was given, or as s3cmd: bare
    if (part == upload.parts.end() || (etag != written(part->second.etag) && etag != part->second.etag))
      return refusal(400, "InvalidPart");
    if (number <= last) return refusal(400, "InvalidPartOrder");
    if (!sizes.empty() && std::cmp_less(sizes.back(), options_.smallest_part))
      return refusal(400, "EntityTooSmall");
    last = number;
    sizes.push_back(part->second.content->size());
    content += *part->second.content;
    md5s += bytes_of_hex(part->second.etag);
  }
  if (sizes.empty()) return refusal(400, "MalformedXML");
  Object object = made_of(std::move(content), md5_of(md5s), call);
  object.etag += fmt::format("-{}", sizes.size());
  object.metadata = upload.metadata;
  object.parts = std::move(sizes);
  const std::string etag = object.etag;
  buckets_[call.bucket][call.key] = std::move(object);
  uploads_.erase(id);
  return {.body = "<CompleteMultipartUploadResult>" + element("ETag", written(etag)) +
                  "</CompleteMultipartUploadResult>"};
}

}  // namespace mox::testing_store
