#include "runtime/base/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "runtime/base/function_ref.h"
#include "runtime/base/version.h"

namespace mox {
namespace {

size_t rounded_up(size_t size, size_t alignment) { return (size + alignment - 1) / alignment * alignment; }

// Notes follow each other: a header, a name, what it holds; each begins at a multiple of `alignment`.
std::string build_id_in_notes(std::span<const unsigned char> notes, size_t alignment) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof header);
    const size_t content = rounded_up(sizeof header + header.n_namesz, alignment);
    const size_t end = content + header.n_descsz;
    if (end > notes.size()) break;
    const std::string_view name(reinterpret_cast<const char*>(notes.data()) + sizeof header, header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4)) {
      std::string text;
      for (const unsigned char byte : notes.subspan(content, header.n_descsz))
        text += fmt::format("{:02x}", byte);
      return text;
    }
    if (rounded_up(end, alignment) >= notes.size()) break;
    notes = notes.subspan(rounded_up(end, alignment));
  }
  return "";
}

std::string build_id_in(const dl_phdr_info& object) {
  for (const ElfW(Phdr) & header : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    if (header.p_type != PT_NOTE) continue;
    // The dynamic linker gives addresses as numbers.  NOLINTNEXTLINE(performance-no-int-to-ptr)
    const auto* notes = reinterpret_cast<const unsigned char*>(object.dlpi_addr + header.p_vaddr);
    std::string id = build_id_in_notes({notes, header.p_memsz}, header.p_align == 8 ? 8 : 4);
    if (!id.empty()) return id;
  }
  return "";
}

bool contains(const dl_phdr_info& object, const void* address) {
  for (const ElfW(Phdr) & header : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    const uintptr_t first = object.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && reinterpret_cast<uintptr_t>(address) - first < header.p_memsz)
      return true;
  }
  return false;
}

// Of the first object that is `wanted`. The program itself comes first.
std::string build_id_of_first(FunctionRef<bool(const dl_phdr_info&)> wanted) {
  struct Search {
    FunctionRef<bool(const dl_phdr_info&)> wanted;
    std::string id;
  } search{wanted, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* data) {
        auto* s = static_cast<Search*>(data);
        if (!s->wanted(*object)) return 0;
        s->id = build_id_in(*object);
        return 1;
      },
      &search);
  return search.id;
}

}  // namespace

std::string program_build_id() {
  return build_id_of_first([](const dl_phdr_info&) { return true; });
}

std::string build_id_of(const void* address) {
  return build_id_of_first([address](const dl_phdr_info& object) { return contains(object, address); });
}

std::string library_build_id() {
  static const char in_this_library = 0;
  return build_id_of(&in_this_library);
}

std::string_view version() { return MOX_VERSION; }

}  // namespace mox
