// Tells ThreadSanitizer about an order that oneTBB guarantees but, not being instrumented, cannot show.
// Without the sanitizer these are nothing. The address is a name: what a thread did before publish(x)
// happened before what another does after observe(x).
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MOX_THREAD_SANITIZER 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define MOX_THREAD_SANITIZER 1
#endif

#ifdef MOX_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace mox::data::internal {

inline void publish([[maybe_unused]] const void* name) {
#ifdef MOX_THREAD_SANITIZER
  __tsan_release(const_cast<void*>(name));
#endif
}

inline void observe([[maybe_unused]] const void* name) {
#ifdef MOX_THREAD_SANITIZER
  __tsan_acquire(const_cast<void*>(name));
#endif
}

}  // namespace mox::data::internal
