// Loaded before the tests of files: the thread of an HTTP client is slow to let go of what a request had, so
// that whoever waited for the request has gone on long before. If the thread held the last owner of its
// client then, it would wait for its own end (small_downloads.cc once did).
#include <curl/curl.h>
#include <dlfcn.h>

#include <chrono>
#include <thread>

namespace {

thread_local bool is_of_client = false;

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" CURLMcode curl_multi_perform(CURLM* multi, int* running) {
  static const auto library = next<CURLMcode (*)(CURLM*, int*)>("curl_multi_perform");
  is_of_client = true;
  return library(multi, running);
}

extern "C" void curl_slist_free_all(curl_slist* list) {
  static const auto library = next<void (*)(curl_slist*)>("curl_slist_free_all");
  if (is_of_client) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  library(list);
}
