#include "tests/support/object_store/s3_server.h"

#include <fmt/format.h>

#include <pugixml.hpp>
#include <thread>

#include "tests/support/object_store/waiting_server.h"

namespace mox::testing_store {
namespace {

std::string unquoted(std::string text) {
  std::erase(text, '"');
  return text;
}

}  // namespace

class S3Server::Http {
 public:
  Http(S3Server& store, int port) : store_(store) {
    server_.new_task_queue = [] {
      return new httplib::ThreadPool(160);
    };  // a connection that is kept has a thread
    server_.set_keep_alive_max_count(1'000'000);
    server_.set_keep_alive_timeout(20);
    server_.set_read_timeout(60);
    server_.set_tcp_nodelay(true);
    const auto handler = [this](const httplib::Request& request, httplib::Response& response) {
      serve(request, response);
    };
    // What has no body is served before the library looks for its handler, by regular expression.
    server_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      const std::string& method = request.method;
      if (method != "GET" && method != "HEAD") return httplib::Server::HandlerResponse::Unhandled;
      serve(request, response);
      return httplib::Server::HandlerResponse::Handled;
    });
    const char* everything = R"([\s\S]*)";
    server_.Put(everything, handler);
    server_.Post(everything, handler);
    server_.Delete(everything, handler);
    port_ =
        port ? (server_.bind_to_port("127.0.0.1", port) ? port : -1) : server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~Http() {
    server_.stop_all();
    thread_.join();
  }
  int port() const { return port_; }

 private:
  void serve(const httplib::Request& request, httplib::Response& response) {
    ArrivedRequest arrived{request.method, request.target, {}, request.body};
    for (const auto& [name, value] : request.headers) {
      std::string lower = name;
      for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      // The library decodes the values of headers.
      arrived.headers[lower] = lower == "x-amz-copy-source" ? encode_percent(value, true) : value;
    }
    const Answer answer = store_.answer(arrived);
    for (const auto& [name, value] : answer.headers) response.set_header(name, value);
    if (answer.content && answer.content->empty()) {
      response.set_content("", "application/octet-stream");
      return;
    }
    if (answer.content) {
      if (answer.status != 200) response.status = answer.status;  // else the library says 200 or 206
      // Of a range no more is touched than the range: objects may be large.
      response.set_content_provider(
          answer.claimed_size ? answer.claimed_size : answer.content->size(), "application/octet-stream",
          [content = answer.content](size_t offset, size_t length, httplib::DataSink& sink) {
            constexpr size_t kPiece = 1 << 20;
            return sink.write(content->data() + offset, std::min(length, kPiece));
          });
      return;
    }
    response.status = answer.status;
    // The library would cut the range that was asked for out of the refusal's own text.
    if (answer.status >= 300) const_cast<httplib::Request&>(request).ranges.clear();
    if (!answer.body.empty()) response.set_content(answer.body, "application/xml");
  }

  S3Server& store_;
  WaitingServer server_;
  std::thread thread_;
  int port_ = 0;
};

S3Server::S3Server(Options options) : options_(std::move(options)) {
  http_ = std::make_unique<Http>(*this, options_.port);
  port_ = http_->port();
}

S3Server::~S3Server() = default;

void S3Server::make_bucket(const std::string& bucket) {
  const std::lock_guard lock(mutex_);
  buckets_[bucket];
}

void S3Server::put(const std::string& bucket, const std::string& key, std::string content) {
  const std::lock_guard lock(mutex_);
  const std::string md5 = md5_of(content);
  buckets_[bucket][key] = made_of(std::move(content), md5, {});
}

std::vector<std::string> S3Server::keys(const std::string& bucket) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> keys;
  if (const auto found = buckets_.find(bucket); found != buckets_.end())
    for (const auto& [key, object] : found->second) keys.push_back(key);
  return keys;
}

std::shared_ptr<const std::string> S3Server::content(const std::string& bucket,
                                                     const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = buckets_.find(bucket);
  if (found == buckets_.end()) return nullptr;
  const auto object = found->second.find(key);
  return object == found->second.end() ? nullptr : object->second.content;
}

int S3Server::uploads_under_way() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(uploads_.size());
}
int64_t S3Server::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}
int64_t S3Server::requests_of(const std::string& operation) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(operation);
  return found == counts_.end() ? 0 : found->second;
}
int64_t S3Server::received_bytes() const {
  const std::lock_guard lock(mutex_);
  return received_;
}
void S3Server::set_page(int page) {
  const std::lock_guard lock(mutex_);
  options_.page = page;
}
void S3Server::set_keys(Keys keys) {
  const std::lock_guard lock(mutex_);
  options_.keys = std::move(keys);
}

void S3Server::set_hears_conditions(bool hears) {
  const std::lock_guard lock(mutex_);
  options_.hears_conditions = hears;
}
void S3Server::set_lists_other_etags(bool another) {
  const std::lock_guard lock(mutex_);
  options_.lists_other_etags = another;
}

void S3Server::set_weak_etags(bool weak) {
  const std::lock_guard lock(mutex_);
  options_.weak_etags = weak;
}
void S3Server::set_claimed_size(size_t bytes) {
  const std::lock_guard lock(mutex_);
  options_.claimed_size = bytes;
}
void S3Server::set_same_etags(bool same) {
  const std::lock_guard lock(mutex_);
  options_.same_etags = same;
}
void S3Server::set_sends_etags(bool sends) {
  const std::lock_guard lock(mutex_);
  options_.sends_etags = sends;
}

void S3Server::set_refuses_listings(bool refuses) {
  const std::lock_guard lock(mutex_);
  options_.refuses_listings = refuses;
}

void S3Server::set_lists_by_first_version(bool first) {
  const std::lock_guard lock(mutex_);
  options_.lists_by_first_version = first;
}
void S3Server::set_encryption(Parameters headers) {
  const std::lock_guard lock(mutex_);
  options_.encryption = std::move(headers);
}
void S3Server::set_checksums(Parameters headers) {
  const std::lock_guard lock(mutex_);
  options_.checksums = std::move(headers);
}

std::string S3Server::written(const std::string& etag) const {
  return (options_.weak_etags ? "W/\"" : "\"") + etag + '"';
}

bool S3Server::is_unmet(const std::string& condition, const std::string& etag) const {
  return !condition.empty() && (options_.weak_etags || unquoted(condition) != etag);
}

void S3Server::count(const std::string& operation, int64_t bytes) {
  ++counts_[operation];
  received_ += bytes;
}

std::string S3Server::Call::header(const std::string& name) const {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

Answer S3Server::refusal(int status, const std::string& code, const std::string& message) {
  Answer answer{.status = status};
  answer.body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error>" + element("Code", code) +
                element("Message", message.empty() ? code : message) +
                element("RequestId", fmt::format("REQ{}", requests_)) + "</Error>";
  return answer;
}

Parameters S3Server::metadata_of(const Call& call) {
  Parameters metadata;
  for (const auto& [name, value] : call.request.headers)
    if (name.starts_with("x-amz-meta-")) metadata.emplace_back(name, value);
  return metadata;
}

S3Server::Object S3Server::made_of(std::string content, const std::string& md5, const Call& call) const {
  Object object;
  object.etag = options_.same_etags           ? "one"
                : options_.encryption.empty() ? hex_of(md5)
                                              : hex_of(md5_of("sealed " + md5));
  object.content = std::make_shared<const std::string>(std::move(content));
  object.mtime = std::time(nullptr) + options_.clock_skew_s;
  object.metadata = metadata_of(call);
  return object;
}

Answer S3Server::answer(const ArrivedRequest& request) {
  Call call{.request = request};
  const size_t mark = request.target.find('?');
  if (mark != std::string::npos) call.query = decode_query(std::string_view(request.target).substr(mark + 1));
  const std::string path = decode_percent(std::string_view(request.target).substr(0, mark));
  const size_t slash = path.find('/', 1);
  call.bucket = path.substr(1, slash - 1);
  if (slash != std::string::npos) call.key = path.substr(slash + 1);

  Keys keys;
  std::time_t now = 0;
  {
    const std::lock_guard lock(mutex_);
    keys = options_.keys;
    now = std::time(nullptr) + options_.clock_skew_s;
  }
  const std::string trouble =
      signature_trouble(request, keys, now);  // outside of the lock: it reads the body
  const std::string md5 = call.header("content-md5");
  if (request.method == "PUT" || !md5.empty()) call.body_md5 = md5_of(request.body);
  const bool body_differs = !md5.empty() && md5 != base64_of(call.body_md5);
  const std::lock_guard lock(mutex_);
  ++requests_;
  Answer answer = !trouble.empty()                  ? refusal(403, trouble, "as the tests' store sees it")
                  : body_differs                    ? refusal(400, "BadDigest")
                  : !buckets_.contains(call.bucket) ? refusal(404, "NoSuchBucket")
                                                    : dispatch(call);
  if (!call.key.empty() && answer.status < 300)
    answer.headers.insert(answer.headers.end(), options_.encryption.begin(), options_.encryption.end());
  answer.headers.emplace_back("Date", http_time(now));
  answer.headers.emplace_back("x-amz-request-id", fmt::format("REQ{}", requests_));
  return answer;
}

Answer S3Server::dispatch(const Call& call) {
  const std::string& method = call.request.method;
  if (call.key.empty()) {
    if (method == "GET" && has(call.query, "uploads")) return list_uploads(call);
    if (method == "GET" && has(call.query, "location"))
      return {.body = "<LocationConstraint>" + options_.keys.region + "</LocationConstraint>"};
    if (method == "GET") return list_objects(call);
    if (method == "HEAD" || method == "PUT") return {};  // it is there
    if (method == "POST" && has(call.query, "delete")) return delete_objects(call);
    return refusal(501, "NotImplemented");
  }
  if (call.key.size() > 1024) return refusal(400, "KeyTooLongError");
  if (has(call.query, "uploads") || has(call.query, "uploadId")) return upload_call(call);
  if (method == "GET" || method == "HEAD") return get_object(call);
  if (method == "POST" && has(call.query, "append")) return append_object(call);
  if (method == "PUT")
    return call.header("x-amz-copy-source").empty() ? put_object(call) : copy_object(call, nullptr);
  if (method == "DELETE") {
    count("DeleteObject");
    buckets_[call.bucket].erase(call.key);
    return {.status = 204};
  }
  return refusal(405, "MethodNotAllowed");
}

Answer S3Server::get_object(const Call& call) {
  count(call.request.method == "GET" ? "GetObject" : "HeadObject");
  const auto& objects = buckets_[call.bucket];
  const auto found = objects.find(call.key);
  if (found == objects.end()) return refusal(404, "NoSuchKey");
  const Object& object = found->second;
  if (options_.hears_conditions && is_unmet(call.header("if-match"), object.etag))
    return refusal(412, "PreconditionFailed");
  size_t first = 0;
  if (std::sscanf(call.header("range").c_str(), "bytes=%zu-", &first) == 1 && first >= object.content->size())
    return refusal(416, "InvalidRange");
  Answer answer{.content = object.content};
  if (call.request.method == "HEAD") answer.claimed_size = options_.claimed_size;
  answer.headers = {{"Last-Modified", http_time(object.mtime)}};
  if (options_.sends_etags || call.request.method == "HEAD")
    answer.headers.emplace_back("ETag", written(object.etag));
  answer.headers.insert(answer.headers.end(), object.metadata.begin(), object.metadata.end());
  if (call.header("x-amz-checksum-mode") == "ENABLED")
    for (const auto& [name, value] : options_.checksums)
      answer.headers.emplace_back(name, value != "computed"         ? value
                                        : name.ends_with("-sha256") ? base64_of(sha256_of(*object.content))
                                                                    : base64_of(crc32c_of(*object.content)));
  if (object.appendable) {
    answer.headers.emplace_back("x-obs-object-type", "Appendable");
    answer.headers.emplace_back("x-obs-next-append-position", std::to_string(object.content->size()));
  }
  if (has(call.query, "partNumber")) {
    answer.content = part_of(object, std::atoi(get(call.query, "partNumber").c_str()));
    if (!answer.content) return refusal(416, "InvalidPartNumber");
    answer.status = 206;
  }
  return answer;
}

Answer S3Server::put_object(const Call& call) {
  count("PutObject", static_cast<int64_t>(call.request.body.size()));
  Object object = made_of(std::string(call.request.body), call.body_md5, call);
  Answer answer;
  answer.headers = {{"ETag", written(object.etag)}};
  buckets_[call.bucket][call.key] = std::move(object);
  return answer;
}

Answer S3Server::append_object(const Call& call) {
  count("AppendObject");
  auto& objects = buckets_[call.bucket];
  const auto found = objects.find(call.key);
  const std::string before = found == objects.end() ? "" : *found->second.content;
  if (found != objects.end() && !found->second.appendable) return refusal(409, "ObjectNotAppendable");
  if (get(call.query, "position") != std::to_string(before.size()))
    return refusal(409, "PositionNotEqualToLength");
  std::string whole = before + std::string(call.request.body);
  const std::string md5 = md5_of(whole);
  Object object = made_of(std::move(whole), md5, call);
  object.appendable = true;
  objects[call.key] = std::move(object);
  return {};
}

Answer S3Server::copy_object(const Call& call, Upload* upload) {
  count(upload ? "UploadPartCopy" : "CopyObject");
  std::string source = decode_percent(call.header("x-amz-copy-source"));
  if (source.starts_with('/')) source.erase(0, 1);
  const size_t slash = source.find('/');
  const auto bucket = buckets_.find(source.substr(0, slash));
  if (bucket == buckets_.end()) return refusal(404, "NoSuchBucket");
  const auto found = bucket->second.find(source.substr(slash + 1));
  if (found == bucket->second.end()) return refusal(404, "NoSuchKey");
  const std::string condition = call.header("x-amz-copy-source-if-match");
  if (is_unmet(condition, found->second.etag) || (!condition.empty() && !options_.meets_copy_conditions))
    return refusal(412, "PreconditionFailed");
  std::string content = *found->second.content;
  size_t first = 0, last = 0;
  if (std::sscanf(call.header("x-amz-copy-source-range").c_str(), "bytes=%zu-%zu", &first, &last) == 2)
    content = content.substr(first, last - first + 1);
  const std::string md5 = md5_of(content);
  Object object = made_of(std::move(content), md5, call);
  object.metadata = found->second.metadata;
  Answer answer;
  const std::string name = upload ? "CopyPartResult" : "CopyObjectResult";
  answer.body = "<" + name + ">" + element("ETag", written(object.etag)) + "</" + name + ">";
  if (upload)
    upload->parts[std::atoi(get(call.query, "partNumber").c_str())] = std::move(object);
  else
    buckets_[call.bucket][call.key] = std::move(object);
  return answer;
}

Answer S3Server::delete_objects(const Call& call) {
  count("DeleteObjects");
  pugi::xml_document document;
  if (!document.load_buffer(call.request.body.data(), call.request.body.size(), pugi::parse_full))
    return refusal(400, "MalformedXML");
  for (const pugi::xml_node& object : document.child("Delete").children("Object"))
    buckets_[call.bucket].erase(object.child_value("Key"));
  return {.body = "<DeleteResult></DeleteResult>"};
}

}  // namespace mox::testing_store
