// Whether the tests run under a sanitizer that reserves most of the address space, and fails where a limit
// leaves too little of it.
#pragma once

namespace mox {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // GCC
inline constexpr bool kReservesAddressSpace = true;
#elif defined(__has_feature)  // Clang
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kReservesAddressSpace = true;
#else
inline constexpr bool kReservesAddressSpace = false;
#endif
#else
inline constexpr bool kReservesAddressSpace = false;
#endif

}  // namespace mox
