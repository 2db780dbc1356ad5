// Which build of a program runs: the build id that the linker writes into each program and library, a hash of
// its content (ld's --build-id; the note NT_GNU_BUILD_ID of the ELF format).
#pragma once

#include <string>

namespace mox {

// That of the running program, in hexadecimal digits; "" if the linker wrote none. Any thread.
std::string program_build_id();

// That of the program or shared library that `address`, of code or data, lies in; "" if there is
// none. Any thread.
std::string build_id_of(const void* address);

// That of what contains moxing itself: of the program, which is linked with it as a rule, or of
// a shared library.
std::string library_build_id();

}  // namespace mox
