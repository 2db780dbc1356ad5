// An object store for tests: S3's calls on loopback, objects in memory. It believes no request: signatures,
// MD5s and digests of bodies are checked as a real one would. What goes wrong on the way is fault_proxy.h's.
#pragma once

#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/object_store/s3_text.h"
#include "tests/support/object_store/signature_check.h"

namespace mox::testing_store {

struct Answer {
  int status = 200;
  Parameters headers{};
  std::string body{};
  // Of a GET or HEAD of an object: served whole or by its ranges.
  std::shared_ptr<const std::string> content{};
  size_t claimed_size = 0;  // of the content, in the answer of a HEAD; 0: the truth
};

class S3Server {
 public:
  struct Options {
    Keys keys;
    int page = 1000;           // objects, uploads and parts in a page of a listing
    int64_t clock_skew_s = 0;  // of this server's clock
    bool refuses_anything = false;
    int64_t smallest_part = 5 << 20;
    int port = 0;
    bool hears_conditions = true, meets_copy_conditions = true;
    bool lists_other_etags = false, weak_etags = false, same_etags = false;
    bool sends_etags = true;
    size_t claimed_size = 0;
    bool lists_by_first_version = false, refuses_listings = false, refuses_upload_listings = false;
    bool tells_first_part_alone = false;
    Parameters encryption{}, checksums{};
  };
  explicit S3Server(Options options);
  S3Server() : S3Server(Options{}) {}
  ~S3Server();

  int port() const { return port_; }
  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // For tests to look behind the counter; "bucket/key".
  void make_bucket(const std::string& bucket);
  void put(const std::string& bucket, const std::string& key, std::string content);
  std::vector<std::string> keys(const std::string& bucket) const;
  std::shared_ptr<const std::string> content(const std::string& bucket, const std::string& key) const;
  int uploads_under_way() const;
  int64_t requests() const;
  int64_t requests_of(const std::string& operation) const;  // "PutObject"
  int64_t received_bytes() const;                           // of bodies of PutObject and UploadPart

  void set_page(int page);
  void set_keys(Keys keys);
  void set_hears_conditions(bool hears);       // If-Match of a GET or HEAD; a store may ignore it
  void set_meets_copy_conditions(bool meets);  // Swift meets none of an object of parts
  void set_lists_other_etags(bool another);    // than it sends objects with, as of parts some stores do
  void set_weak_etags(bool weak);              // W/"...", which no If-Match matches (RFC 9110, 13.1.1)
  void set_claimed_size(size_t bytes);         // what a HEAD says of each object; 0: the truth
  void set_same_etags(bool same);              // one for every content
  void set_sends_etags(bool sends);  // in the answers of GET; those of HEAD and listings have them always

  // Listings know ListObjects alone: list-type and encoding-type are not heard, as with Huawei's OBS.
  void set_lists_by_first_version(bool first);
  void set_refuses_listings(bool refuses);         // for want of the right to list
  void set_refuses_upload_listings(bool refuses);  // as a store that has no such call
  void set_tells_first_part_alone(bool first);     // to who asks for parts of an object by their numbers
  // These headers are in the answers for objects, whose ETags are no MD5s then.
  void set_encryption(Parameters headers);
  // These are in the answers of GET and HEAD to who asks for checksums; the value "computed" becomes what the
  // header's name says of the content.
  void set_checksums(Parameters headers);

 private:
  struct Object {
    std::shared_ptr<const std::string> content;
    std::string etag;
    std::time_t mtime = 0;
    Parameters metadata;        // x-amz-meta-*
    std::vector<size_t> parts;  // their sizes; none: it was made in one piece
    bool appendable = false;
  };
  struct Upload {
    std::string bucket, key;
    Parameters metadata;
    std::time_t initiated = 0;
    std::map<int, Object> parts;
  };
  struct Call {
    ArrivedRequest request{};
    Parameters query{};
    std::string bucket{}, key{};
    std::string body_md5{};  // 16 bytes
    std::string header(const std::string& name) const;
  };
  class Http;

  Answer answer(const ArrivedRequest& request);
  Answer dispatch(const Call& call);
  Answer refusal(int status, const std::string& code, const std::string& message = "");
  Answer get_object(const Call& call);
  Answer put_object(const Call& call);
  Answer copy_object(const Call& call, Upload* upload);
  Answer append_object(const Call& call);
  Answer delete_objects(const Call& call);
  Answer list_objects(const Call& call);
  Answer list_uploads(const Call& call);
  Answer list_parts(const Call& call);
  Answer upload_call(const Call& call);
  Answer complete(const Call& call);
  // From 1; nothing if it is not told.
  std::shared_ptr<const std::string> part_of(const Object& object, int number) const;
  void count(const std::string& operation, int64_t bytes = 0);
  // As headers and documents have it.
  std::string written(const std::string& etag) const;
  // Whether a condition, as a header has it, is there, and names another ETag.
  bool is_unmet(const std::string& condition, const std::string& etag) const;
  static Parameters metadata_of(const Call& call);
  // `md5` of the content, 16 bytes.
  Object made_of(std::string content, const std::string& md5, const Call& call) const;

  mutable std::mutex mutex_;
  Options options_;
  std::map<std::string, std::map<std::string, Object>> buckets_;
  std::map<std::string, Upload> uploads_;
  std::map<std::string, int64_t> counts_;
  int64_t received_ = 0, requests_ = 0, next_id_ = 1;
  int port_ = 0;
  std::unique_ptr<Http> http_;
};

}  // namespace mox::testing_store
