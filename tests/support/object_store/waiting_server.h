// A server of the HTTP library whose idle connections sleep. The library's own wakes the thread of each
// connection some 76 times a second to look whether anything has come, which takes a share of the processor
// from whatever is measured beside it.
#pragma once

#include <httplib.h>

namespace mox::testing_store {

class WaitingServer : public httplib::Server {
 public:
  WaitingServer();
  ~WaitingServer() override;

  // Also ends the idle connections.
  void stop_all();

 private:
  bool process_and_close_socket(socket_t sock) override;
  template <typename Own>  // a template: versions of the library differ in how a request is answered
  static bool answer(Own& server, httplib::Stream& connection, bool& closed);
  bool has_request(socket_t sock) const;  // waits for one; false if none comes any more

  const int stopping_;  // an eventfd, readable once the server stops
};

}  // namespace mox::testing_store
