// What streams have fetched and are fetching: pieces by key, the threads that fetch them, and their memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace mox::file::internal {

class StreamBuffer {
 public:
  using Bytes = std::shared_ptr<const std::string>;

  // The pieces that one request brings.
  struct Request {
    std::vector<std::string> keys;
    int64_t bytes = 0;  // of all of them, as far as is known
    // The content of each, in the order of the keys. May throw; then every piece of the request fails.
    std::function<std::vector<std::string>(std::stop_token)> fetch;
  };

  // Of the process. Its threads are begun with the first request and end with it.
  static StreamBuffer& of_process();

  // Whether a piece is there or on its way.
  bool has(const std::string& key);

  // Fetches what is not there yet, some time, or before all that was announced; false, and nothing, if there
  // is no room for it.
  bool announce(Request request, bool first = false);

  // The piece of a key; `request` (of this key alone) is made if it is neither there nor on its way,
  // before all that was announced. What failed is thrown, and fetched anew by the next call.
  Bytes take(const std::string& key, const std::function<Request()>& request);

  // Gives back the memory of a piece that is there and that nobody waits for; others stay.
  void drop(const std::string& key);

  void set_limit(int64_t bytes);
  int64_t limit();
  int64_t take_peak();

 private:
  struct Piece {
    bool done = false;
    Bytes bytes;
    std::exception_ptr error;
    int64_t cost = 0;
    int waiting = 0;  // callers of take
    std::list<std::string>::iterator used;
  };
  StreamBuffer() = default;
  ~StreamBuffer();
  void add(Request request, bool first);
  bool make_room(int64_t bytes);
  void work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any requested_;  // for the threads
  std::condition_variable arrived_;        // for callers of take
  std::unordered_map<std::string, Piece> pieces_;
  std::list<std::string> order_;  // of keys, the longest unused first
  std::deque<Request> requests_;
  int64_t limit_ = int64_t{256} << 20, bytes_ = 0, peak_ = 0;
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

}  // namespace mox::file::internal
