// The next page of a listing travels while one is taken.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>

#include "moxing/file/s3/client.h"
#include "moxing/file/s3/store_error.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"

namespace mox::file {
namespace {

// Ten objects, three a page.
class ListingAhead : public testing::Test {
 protected:
  ListingAhead() {
    for (int i = 0; i < 10; ++i) store_.server.put("bucket", fmt::format("d/{}", i), "x");
    store_.server.set_page(3);
  }
  void list(const std::function<void(s3::Listing&)>& take_page, std::stop_token stop = {}) const {
    store_client()->list({"bucket", "d/"}, "", take_page, std::move(stop));
  }
  int64_t pages_asked_for() const {
    return store_.server.requests_of("ListObjectsV2") + store_.server.requests_of("ListObjects");
  }

  StoreFixture store_;
};

TEST_F(ListingAhead, AsksForThePageThatFollows) {
  int64_t taken = 0;
  std::string keys;
  list([&](s3::Listing& page) {
    for (const s3::ListedObject& object : page.objects) keys += object.key.substr(2);
    const int64_t wanted = std::min<int64_t>(++taken + 1, 4);
    for (int i = 0; i < 1000 && pages_asked_for() < wanted; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(pages_asked_for(), wanted) << "while page " << taken << " is taken";
  });
  EXPECT_EQ(keys, "0123456789");
  EXPECT_EQ(pages_asked_for(), 4);
}

TEST_F(ListingAhead, WhoTakesAPageMayThrow) {
  EXPECT_THROW(list([](s3::Listing&) { throw DataError("not this one"); }), DataError);
  // What was under way belongs to nobody, and the client goes on.
  size_t objects = 0;
  list([&](s3::Listing& page) { objects += page.objects.size(); });
  EXPECT_EQ(objects, 10);
}

TEST_F(ListingAhead, EndsBetweenPagesWhenItIsStopped) {
  std::stop_source stop;
  int taken = 0;
  EXPECT_THROW(list(
                   [&](s3::Listing&) {
                     ++taken;
                     stop.request_stop();
                   },
                   stop.get_token()),
               s3::Cancelled);
  EXPECT_LE(taken, 2) << "a page that has arrived may still be taken";
}

// What goes wrong with a page that was asked for early is mended as ever.
TEST_F(ListingAhead, RepeatsAPageThatIsRefused) {
  using testing_store::Fault;
  store_.proxy.set_plan([](const std::string&, int64_t number) {
    constexpr Fault kFaults[] = {Fault::kNone, Fault::kStatus503, Fault::kResetInAnswer, Fault::kNone};
    return testing_store::Happening{.fault = number < 4 ? kFaults[number] : Fault::kNone};
  });
  std::string keys;
  list([&](s3::Listing& page) {
    for (const s3::ListedObject& object : page.objects) keys += object.key.substr(2);
  });
  EXPECT_EQ(keys, "0123456789");
  EXPECT_EQ(store_.proxy.faults_made(), 2);
}

}  // namespace
}  // namespace mox::file
