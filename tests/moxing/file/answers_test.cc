// What a store, or whatever stands where one should be, may answer, and when.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/s3/client.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_store::Fault;
using testing_store::Happening;

// Answers every request as the test says.
class AnsweringServer {
 public:
  explicit AnsweringServer(const httplib::Server::Handler& handler) {
    const char* everything = R"([\s\S]*)";
    server_.Get(everything, handler);
    server_.Put(everything, handler);
    server_.Delete(everything, handler);
    server_.set_tcp_nodelay(true);  // else each of a thousand answers may wait 40 ms
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~AnsweringServer() {
    set_store_options({});  // its connections
    server_.stop();
    thread_.join();
  }
  s3::StoreOptions options() const {
    s3::StoreOptions options;
    options.endpoint = fmt::format("http://127.0.0.1:{}", port_);
    options.region = "us-east-1";
    options.first_delay_s = 0.001;
    options.attempts = 2;
    return options;
  }

 private:
  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
};

// A success may be a refusal, whatever was asked for.
TEST(AnswersTest, ARemovalOrAListingThatIsAnErrorInASuccessIsAskedForAgain) {
  StoreFixture store;
  for (const char* name : {"a", "b/c"}) write(std::string("s3://bucket/top/") + name, "abc");
  const auto only_first = [](const std::string& operation, int64_t number) {
    return Happening{operation != "GetObject" && number == 0 ? Fault::kErrorIn200 : Fault::kNone};
  };
  store.proxy.set_plan(only_first);
  EXPECT_EQ(list_directory("s3://bucket/top", {.recursive = true}).size(), 3u);
  remove("s3://bucket/top/a");
  EXPECT_FALSE(exists("s3://bucket/top/a"));
  auto options = store.options();
  options.attempts = 2;
  store.use(options);
  store.proxy.set_plan([](const std::string& operation, int64_t) {
    return Happening{operation != "GetObject" ? Fault::kErrorIn200 : Fault::kNone};
  });
  for (const auto& call :
       {+[] { remove("s3://bucket/top/b/c"); }, +[] { list_directory("s3://bucket/top"); }})
    EXPECT_THAT(
        message_of<IoError>(call),
        AllOf(HasSubstr("of 's3://bucket/"), HasSubstr("200 InternalError"), HasSubstr("attempt 2 of 2")));
}

TEST(AnswersTest, APageOfAnotherServerIsNamedWithWhatWasAskedFor) {
  const StoreFixture credentials;
  const AnsweringServer portal([](const httplib::Request&, httplib::Response& response) {
    response.set_header("x-amz-request-id", "REQ7");
    response.set_content("<html>Log in</html>", "text/html");
  });
  StoreFixture::use(portal.options());
  EXPECT_THAT(message_of<DataError>([] { list_directory("s3://bucket/a"); }),
              AllOf(HasSubstr("ListObjectsV2 of 's3://bucket/'"), HasSubstr("no <ListBucketResult>"),
                    HasSubstr("status 200"), HasSubstr("request id REQ7")));
}

// The ETag or a checksum might be among those that are not kept, and would be compared with nothing.
TEST(AnswersTest, AnAnswerOfTooManyHeaderFieldsIsAnError) {
  const StoreFixture credentials;
  std::atomic<int> asked{0};
  std::atomic<size_t> fields{s3::kMostHeaderFields + 1};
  const AnsweringServer talker([&](const httplib::Request&, httplib::Response& response) {
    ++asked;
    for (size_t i = 0; i < fields; ++i) response.set_header(fmt::format("x-field-{}", i), "1");
    response.set_header("ETag", "\"900150983cd24fb0d6963f7d28e17f72\"");
    response.set_header("Last-Modified", "Mon, 02 Jan 2023 03:04:05 GMT");
    response.set_content("abc", "text/plain");
  });
  StoreFixture::use(talker.options());
  EXPECT_THAT(message_of<IoError>([] { stat("s3://bucket/a"); }),
              AllOf(HasSubstr("'s3://bucket/a'"), HasSubstr("more than 1024 header fields")));
  EXPECT_EQ(asked, 1);  // it would be no other the next time
  fields = 1000;
  EXPECT_EQ(stat("s3://bucket/a").length, 3);
}

TEST(AnswersTest, AListingOfUploadsThatGoesRoundInACircleIsAnError) {
  const StoreFixture credentials;
  std::atomic<int> pages{0};
  const AnsweringServer circle([&](const httplib::Request&, httplib::Response& response) {
    response.set_content(
        fmt::format(
            "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>{}</NextKeyMarker>"
            "</ListMultipartUploadsResult>",
            ++pages % 2 ? "a" : "b"),
        "application/xml");
    if (pages > 1000) response.status = 403;  // for ever, without the check
  });
  s3::Client client(circle.options());
  EXPECT_THAT(message_of<DataError>([&] {
                client.uploads_of({"bucket", "c"});
              }),
              HasSubstr("round in a circle"));
}

// A store that does not hear where the next page is to begin.
TEST(AnswersTest, AListingThatGoesRoundInACircleIsAnError) {
  const StoreFixture credentials;
  std::atomic<int> pages{0};
  const AnsweringServer circle([&](const httplib::Request&, httplib::Response& response) {
    response.set_content(
        "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>d/a</Key><Size>1</Size></Contents>"
        "</ListBucketResult>",
        "application/xml");
    if (++pages > 1000) response.status = 403;  // for ever, without the check
  });
  StoreFixture::use(circle.options());
  EXPECT_THAT(message_of<DataError>([] { list_directory("s3://bucket/d"); }), HasSubstr("round in a circle"));
}

// Each page says that another one comes, and where.
TEST(AnswersTest, AListingOfEmptyPagesEnds) {
  const StoreFixture credentials;
  std::atomic<int> pages{0};
  const AnsweringServer endless([&](const httplib::Request&, httplib::Response& response) {
    response.set_content(
        fmt::format("<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>{}"
                    "</NextContinuationToken></ListBucketResult>",
                    ++pages),
        "application/xml");
    if (pages > 2000) response.status = 403;  // for ever, without the check
  });
  StoreFixture::use(endless.options());
  EXPECT_THAT(message_of<DataError>([] { list_directory("s3://bucket/d"); }),
              AllOf(HasSubstr("'s3://bucket/d"), HasSubstr("1000 pages in a row without a name")));
}

TEST(AnswersTest, ASizeThatNoObjectHasIsNotBelieved) {
  const StoreFixture credentials;
  const AnsweringServer boasting([](const httplib::Request&, httplib::Response& response) {
    response.set_header("ETag", "\"00000000000000000000000000000000\"");
    response.set_content_provider(size_t{1} << 50, "application/octet-stream",
                                  [](size_t, size_t, httplib::DataSink&) { return false; });
  });
  s3::Client client(boasting.options());
  EXPECT_THAT(message_of<DataError>([&] {
                client.head({"bucket", "large"});
              }),
              AllOf(HasSubstr("large'"), HasSubstr("1125899906842624 bytes")));
}

TEST(AnswersTest, WhatWaitsForAConnectionDoesNotStandStill) {
  StoreFixture store;
  write("s3://bucket/a", "abc");
  auto options = store.options();
  options.connections = 1;
  options.stall_s = 1.2;
  options.attempts = 1;
  store.use(options);
  store.proxy.set_plan([](const std::string&, int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return Happening{};
  });
  std::vector<std::future<std::string>> reads;
  for (int i = 0; i < 8; ++i)
    reads.push_back(std::async(std::launch::async, [] { return read("s3://bucket/a"); }));
  for (auto& each : reads) EXPECT_EQ(each.get(), "abc");
}

// A byte now and then would be an answer that never ends.
TEST(AnswersTest, ThatTrickleAreGivenUp) {
  const StoreFixture credentials;
  constexpr size_t kSize = 16'000, kPiece = 160;
  std::atomic<bool> is_slow{true};
  const AnsweringServer server([&](const httplib::Request&, httplib::Response& response) {
    response.set_content_provider(kSize, "application/octet-stream",
                                  [&](size_t, size_t left, httplib::DataSink& sink) {
                                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                    const std::string piece(std::min(left, is_slow ? 1 : kPiece), 'x');
                                    return sink.write(piece.data(), piece.size());
                                  });
  });
  auto options = server.options();
  options.stall_s = 0.8;
  s3::Client client(options);
  const auto get = [&] { return client.get({"bucket", "a"}, kSize); };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(message_of<IoError>(get),
              AllOf(HasSubstr("less than 1024 bytes a second have come"), HasSubstr("attempt 2 of 2")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  is_slow = false;
  EXPECT_EQ(get().size(), kSize) << "slow, but not too slow";
}

// As long as a job runs, somebody may have to renew them.
TEST(AnswersTest, TokensThatExpireAreReadAgain) {
  TemporaryDirectory directory;
  StoreFixture fixture;  // whose variables would come first
  for (const char* name : {"ACCESS_KEY_ID", "SECRET_ACCESS_KEY"}) ::unsetenv(name);
  const std::string path = directory.file("credentials");
  ::setenv("AWS_SHARED_CREDENTIALS_FILE", path.c_str(), 1);
  const auto renew = [&](const std::string& token) {
    write(path, "[default]\naws_access_key_id=a\naws_secret_access_key=b\naws_session_token=" + token);
  };
  std::string valid = "first";
  std::mutex mutex;
  const AnsweringServer server([&](const httplib::Request& request, httplib::Response& response) {
    const std::lock_guard lock(mutex);
    if (request.get_header_value("x-amz-security-token") == valid)
      return response.set_content("abc", "application/octet-stream");
    response.status = 400;
    response.set_content("<Error><Code>ExpiredToken</Code></Error>", "application/xml");
  });
  renew("first");
  StoreFixture::use(server.options());
  EXPECT_EQ(read("s3://bucket/a"), "abc");
  for (const std::string token : {"second", "third"}) {
    {
      const std::lock_guard lock(mutex);
      valid = token;
    }
    EXPECT_THAT(message_of<IoError>([] { exists("s3://bucket/a"); }), HasSubstr("ExpiredToken"));
    renew(token);
    std::vector<std::future<std::string>> reads;
    for (int i = 0; i < 8; ++i)
      reads.push_back(std::async(std::launch::async, [] { return read("s3://bucket/a"); }));
    for (auto& each : reads) EXPECT_EQ(each.get(), "abc");
  }
  ::unsetenv("AWS_SHARED_CREDENTIALS_FILE");
}

// The keys of a cloud machine: its service answers every second time alone.
class MachineKeys : public testing::Test {
 protected:
  MachineKeys() {
    for (const char* name : {"ACCESS_KEY_ID", "SECRET_ACCESS_KEY"}) ::unsetenv(name);
    for (const char* name : {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"})
      ::setenv(name, directory_.file("none").c_str(), 1);
    auto options = server_.options();
    ::setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", options.endpoint.c_str(), 1);
    options.instance_metadata = true;
    options.attempts = 10;
    StoreFixture::use(options);
  }
  ~MachineKeys() override {
    for (const char* name :
         {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_EC2_METADATA_SERVICE_ENDPOINT"})
      ::unsetenv(name);
  }
  void answer(const httplib::Request& request, httplib::Response& response) {
    if (request.path == "/latest/api/token" && ++asked_ % 2 == 0) response.status = 503;
    if (request.path.ends_with("/security-credentials/role")) {
      const auto end = std::chrono::system_clock::now() + std::chrono::seconds(good_for_s_);
      response.set_content(
          fmt::format(R"({{"AccessKeyId":"a","SecretAccessKey":"s","Token":"t","Expiration":"{}"}})",
                      testing_store::iso_time(std::chrono::system_clock::to_time_t(end))),
          "application/json");
    } else if (request.path.ends_with("/security-credentials/")) {
      response.set_content("role", "text/plain");
    } else if (request.has_param("list-type")) {
      // Two pages; what is asked for where the second one begins is there.
      const bool is_last = request.has_param("continuation-token");
      response.set_content(
          fmt::format("<ListBucketResult><IsTruncated>{}</IsTruncated>{}<Contents><Key>d/{}"
                      "</Key><Size>3</Size></Contents></ListBucketResult>",
                      !is_last, is_last ? "" : "<NextContinuationToken>1</NextContinuationToken>",
                      is_last ? "b" : "a"),
          "application/xml");
    } else {
      response.set_content("abc", "application/octet-stream");
    }
  }

  std::atomic<int> asked_{0}, good_for_s_{0};
  TemporaryDirectory directory_;
  const StoreFixture fixture_;  // whose variables would come first
  const AnsweringServer server_{
      [this](const httplib::Request& request, httplib::Response& response) { answer(request, response); }};
};

TEST_F(MachineKeys, AreAskedForAgainWhereTheServiceIsNotWell) {
  good_for_s_ = -1;  // so that each request asks for others
  for (int i = 0; i < 4; ++i) EXPECT_EQ(read("s3://bucket/d/a"), "abc");
  EXPECT_EQ(list_directory("s3://bucket/d", {.recursive = true}).size(), 2u);
  EXPECT_EQ(copy_parallel("s3://bucket/d", directory_.file("to")).files, 2);
}

TEST_F(MachineKeys, AreUsedUntilTheyExpire) {
  good_for_s_ = 200;  // others are wanted soon
  for (int i = 0; i < 10; ++i) EXPECT_EQ(read("s3://bucket/d/a"), "abc");
  EXPECT_EQ(asked_, 2) << "not again at once";
}

// libcurl shows the whole of what it cannot use.
TEST(AnswersTest, ThePasswordOfAProxyIsInNoMessage) {
  StoreFixture store;
  auto options = store.options();
  options.endpoint = "http://store.invalid";
  for (const char* proxy :
       {"ftp://user:pa55word@host:1", "http://user:pa55 word@host:1", "user:pa55word@host:x",
        "http://user:pa55word@[::1", "socks9://user:pa55word@host"}) {
    ::setenv("http_proxy", proxy, 1);
    store.use(options);
    EXPECT_THAT(message_of<IoError>([] { read("s3://bucket/a"); }),
                AllOf(HasSubstr("proxy"), Not(HasSubstr("pa55")), HasSubstr("attempt 1 of")));
  }
  ::unsetenv("http_proxy");
}

}  // namespace
}  // namespace mox::file
