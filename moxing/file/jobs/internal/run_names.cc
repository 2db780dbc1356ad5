#include "moxing/file/jobs/internal/run_names.h"

#include <algorithm>

#include "moxing/file/jobs/internal/place.h"

namespace mox::file::internal {
namespace {

bool are_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// NAME.tmp.PID.NUMBER, of mox::write_file_atomically.
bool is_being_replaced(std::string_view name) {
  constexpr std::string_view kBetween = ".tmp.";
  const size_t at = name.rfind(kBetween);
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view numbers = name.substr(at + kBetween.size());
  const size_t dot = numbers.find('.');
  return dot != std::string_view::npos && are_digits(numbers.substr(0, dot)) &&
         are_digits(numbers.substr(dot + 1));
}

// NAME.writing- and 16 hexadecimal digits, of mox::NewFile.
bool is_being_made(std::string_view name) {
  constexpr std::string_view kBetween = ".writing-";
  constexpr size_t kDigits = 16;
  const size_t at = name.rfind(kBetween);
  return at != std::string_view::npos && at > 0 && name.size() - at - kBetween.size() == kDigits &&
         name.find_first_not_of("0123456789abcdef", at + kBetween.size()) == std::string_view::npos;
}

// NAME.moxing.part, of a copy, and its journal; with tildes where a file has that name.
bool is_being_copied(std::string_view name) {
  constexpr std::string_view kPart = ".moxing.part", kJournal = ".journal";
  if (name.ends_with(kJournal)) name.remove_suffix(kJournal.size());
  while (name.ends_with('~')) name.remove_suffix(1);
  return name.ends_with(kPart) && name.size() > kPart.size();
}

bool is_checkpoint_on_its_way(std::string_view name) {
  for (const std::string_view end : {".saving", ".previous", ".deleting"})
    if (name.ends_with(end)) return step_of(name.substr(0, name.size() - end.size())).has_value();
  return false;
}

}  // namespace

bool is_of_machine(std::string_view name, bool is_directory) {
  if (is_directory) return is_checkpoint_on_its_way(name);
  for (const char* own : {".lock", ".save-lock", ".stored", ".stored-files"})
    if (name == own) return true;
  return is_being_replaced(name) || is_being_made(name) || is_being_copied(name);
}

bool begins_as_manifest(std::string_view content) {
  constexpr size_t kBegin = 128;
  return content.starts_with("{\n  \"crc32\": \"") &&
         content.substr(0, kBegin).find("\"format\": \"moxing checkpoint\"") != std::string_view::npos;
}

bool is_of_every_checkpoint(std::string_view name) {
  return name == kManifest || name == "variables.safetensors" || name == "optimizer.safetensors";
}

bool has_checkpoint_name(const std::string& name) { return step_of(last_name(name)).has_value(); }

bool is_where_runs_look(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == std::string::npos || name.substr(0, slash) == "best";
}

}  // namespace mox::file::internal
