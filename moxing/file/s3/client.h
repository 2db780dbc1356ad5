// The calls of an object store that speaks S3: signed, checked, and repeated where that helps.
//
// Every call blocks. It throws NotFound for an object or bucket that is not there, StoreError for what the
// store refuses (after the attempts that StoreOptions allows where another one may help), DataError for an
// answer that is not what it should be, and Cancelled. Threads: any number.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/file/s3/credentials.h"
#include "moxing/file/s3/documents.h"
#include "moxing/file/s3/http.h"
#include "moxing/file/s3/object_info.h"
#include "moxing/file/s3/store_options.h"

namespace mox::file::s3 {

struct ObjectName {
  std::string bucket, key;
  std::string scheme = "s3";
  std::string shown() const { return scheme + "://" + bucket + "/" + key; }
};

struct Part {
  int number = 0;  // from 1
  int64_t size = 0;
  std::string md5;         // 16 bytes; empty for a part that the store has copied
  std::string etag;        // what the store calls it
  bool encrypted = false;  // then that is no MD5
};

class Client {
 public:
  explicit Client(const StoreOptions& options);
  ~Client();

  const StoreOptions& options() const { return options_; }

  std::optional<ObjectInfo> head(const ObjectName& object, std::stop_token stop = {});
  // With its checksum, which may need the right to use the key that it is encrypted with: for who reads it.
  std::optional<ObjectInfo> head_with_checksum(const ObjectName& object, std::stop_token stop = {});
  // The size of a part (from 1) of an object that was uploaded in parts; 0 if the store does not say.
  int64_t size_of_part(const ObjectName& object, int number, std::stop_token stop = {});

  // The whole object, which must not be longer than `most_bytes`; checked where it tells its content.
  std::string get(const ObjectName& object, int64_t most_bytes, ObjectInfo* info = nullptr,
                  std::stop_token stop = {});
  // The same of one that was looked at before: changed_object or changed_size (store_error.h) if it no longer
  // has this size and this ETag ("" for any).
  std::string get_same(const ObjectName& object, const ObjectInfo& known, ObjectInfo* info = nullptr,
                       std::stop_token stop = {});

  // Begins the first attempt of get_same and returns at once; `on_end` as HttpClient::begin has it. Once it
  // is over, get_same goes on from it.
  void begin_get(const ObjectName& object, int64_t size, std::function<void(HttpAttempt)> on_end,
                 std::stop_token stop = {});
  std::string get_same(const ObjectName& object, const ObjectInfo& known, ObjectInfo* info,
                       std::stop_token stop, HttpAttempt begun);
  // The MD5 (32 digits) that the body of an attempt must have to be an object of `size` bytes; "" if the
  // attempt has not gone well, or the store does not say.
  static std::string md5_promised_by(const HttpAttempt& attempt, int64_t size);

  // `length` > 0 bytes; changed_object (store_error.h) if the object no longer has this ETag ("" for any).
  std::string get_range(const ObjectName& object, int64_t offset, int64_t length, const std::string& etag,
                        std::stop_token stop = {});

  // Returns the ETag, which has been compared with the MD5 where it is one. `md5`: 16 bytes, of the body.
  std::string put(const ObjectName& object, std::string_view body, const std::string& md5,
                  std::stop_token stop = {});

  void remove(const ObjectName& object, std::stop_token stop = {});
  // Any number of keys of one bucket, 1,000 a request. Returns those that stay.
  std::vector<KeptKey> remove_many(const ObjectName& bucket, const std::vector<std::string>& keys,
                                   std::stop_token stop = {});

  // All pages of the keys that begin with that of `prefix`, in order, each while the next one travels.
  // `delimiter`: "/" or "". By ListObjectsV2, and by ListObjects where the store speaks that alone.
  void list(const ObjectName& prefix, const std::string& delimiter,
            const std::function<void(Listing&)>& take_page, std::stop_token stop = {});
  // Up to `most` objects and prefixes of the first page.
  Listing list_some(const ObjectName& prefix, const std::string& delimiter, int most,
                    std::stop_token stop = {});

  // Within the store; `etag`: what the source must still have, if it is strong. Returns the ETag of the copy.
  // At most 5 GiB.
  std::string copy(const ObjectName& from, const ObjectName& to, const std::string& etag,
                   std::stop_token stop = {});

  std::string create_upload(const ObjectName& object, int64_t part_size, std::stop_token stop = {});
  Part upload_part(const ObjectName& object, const std::string& upload, int number, std::string_view body,
                   const std::string& md5, std::stop_token stop = {});
  Part copy_part(const ObjectName& from, const std::string& etag, int64_t offset, int64_t length,
                 const ObjectName& to, const std::string& upload, int number, std::stop_token stop = {});
  // Makes the object of its parts, which are in order. If the answer gets lost, the object itself says
  // whether it was made.
  void complete(const ObjectName& object, const std::string& upload, const std::vector<Part>& parts,
                std::stop_token stop = {});
  void abort(const ObjectName& object,
             const std::string& upload);  // one that is gone is well; is not cancelled
  std::vector<ListedPart> parts_of(const ObjectName& object, const std::string& upload,
                                   std::stop_token stop = {});
  // The uploads to exactly this key that are under way.
  std::vector<ListedUpload> uploads_of(const ObjectName& object, std::stop_token stop = {});

  // Whether `append` is to be used for objects of this scheme.
  bool has_append(const std::string& scheme) const;
  // OBS's call: adds at `position`, the length that the object has. StoreError 409 if it has another one.
  void append(const ObjectName& object, int64_t position, std::string_view body, std::stop_token stop = {});

  // Attempts beyond the first of all requests, for reports.
  int64_t repeated_requests() const { return repeated_.load(); }

 private:
  struct Call;
  struct Place;
  // `begun`: an attempt that is over, and counts as the first.
  HttpResponse send(const Call& call, std::stop_token stop, std::optional<HttpAttempt> begun = {});
  std::string get(const ObjectName& object, int64_t most_bytes, ObjectInfo* info, std::stop_token stop,
                  std::optional<HttpAttempt> begun);
  std::string get_same(const ObjectName& object, const ObjectInfo& known, ObjectInfo* info,
                       std::stop_token stop, std::optional<HttpAttempt> begun);
  HttpRequest signed_request(const Call& call);
  // As HttpClient::begin: where the keys to sign with are not to be had for the moment, the attempt has
  // failed, and `on_end` is called here.
  void begin(const Call& call, std::function<void(HttpAttempt)> on_end, std::stop_token stop);
  // Why a HEAD was refused: its answer has no body, that of a GET says. Nothing if that was let through.
  std::optional<StoreRefusal> explanation_of(const Call& refused, std::stop_token stop);
  Place place_of(const std::string& bucket) const;
  Call whole_object(const ObjectName& object, int64_t most_bytes) const;
  // Of a listing, behind the page `before` if there is one.
  Call page_call(const ObjectName& prefix, const std::string& delimiter, const Listing* before) const;
  // Huawei's store, by the names of its objects or its host: it has calls of its own, and not all of S3's.
  bool is_obs(const std::string& scheme) const;
  std::string region_of(const std::string& bucket) const;
  // Whether what was refused is mended, so that another attempt makes sense: the clock, the
  // region, expired credentials.
  bool mend(const Call& call, const HttpRequest& request, const HttpResponse& response,
            const StoreRefusal& refusal);
  // Whether there are others now than a request was signed with.
  bool renews_credentials(const HttpRequest& request);
  [[noreturn]] void refuse(const Call& call, const HttpResponse& response, const StoreRefusal& refusal,
                           int attempt) const;
  Credentials credentials();
  std::string without_secrets(std::string text) const;

  StoreOptions options_;
  HttpClient http_;
  SigningKey signing_key_;
  mutable std::mutex mutex_;  // of what follows
  Credentials credentials_;
  bool credentials_known_ = false;
  std::chrono::system_clock::time_point credentials_expire_ = std::chrono::system_clock::time_point::max();
  std::chrono::system_clock::time_point next_renewal_{};  // not before, after one that has failed
  std::map<std::string, std::string> regions_;            // of buckets that are elsewhere
  std::atomic<int64_t> clock_skew_s_{0};                  // the store's clock minus ours
  std::atomic<int64_t> repeated_{0};
};

// Of an object of parts: the MD5 of the MD5s of the parts, "-", their number.
std::string etag_of_parts(const std::vector<std::string>& md5s);

// What IMDSv2 says.
TemporaryCredentials ask_instance_metadata();

}  // namespace mox::file::s3
