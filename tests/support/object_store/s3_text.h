// What the tests' object store needs of texts: written apart from the client's code, which it checks.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mox::testing_store {

using Parameters = std::vector<std::pair<std::string, std::string>>;

std::string decode_percent(std::string_view text);                     // "%41" alone; "+" is itself
std::string encode_percent(std::string_view text, bool keep_slashes);  // as signatures want it
Parameters decode_query(std::string_view query);                       // in the order in which they came
bool has(const Parameters& parameters, std::string_view name);
std::string get(const Parameters& parameters, std::string_view name);  // "" if it is not there

std::string xml_text(std::string_view text);                           // escaped
std::string element(std::string_view name, std::string_view content);  // escaped too

std::string hex_of(std::string_view bytes);
std::string bytes_of_hex(std::string_view digits);
std::string md5_of(std::string_view bytes);     // raw
std::string sha256_of(std::string_view bytes);  // raw
std::string crc32c_of(std::string_view bytes);  // 4 bytes, the highest first
std::string base64_of(std::string_view bytes);

std::string iso_time(std::time_t time);   // 2026-01-31T12:00:00.000Z
std::string http_time(std::time_t time);  // Sat, 31 Jan 2026 12:00:00 GMT

}  // namespace mox::testing_store
