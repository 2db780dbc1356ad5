#include "moxing/file/s3/etag.h"

namespace mox::file::s3 {
namespace {

constexpr std::string_view kWeak = "W/\"";

std::string_view without_quotes(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

std::string_view opaque(std::string_view etag) {
  return is_weak(etag) ? without_quotes(etag.substr(kWeak.size() - 1)) : etag;
}

}  // namespace

std::string parse_etag_text(std::string_view text) { return std::string(without_quotes(text)); }

std::string etag_text(const std::string& etag) { return is_weak(etag) ? etag : '"' + etag + '"'; }

bool is_weak(std::string_view etag) { return etag.starts_with(kWeak); }

bool same_version(std::string_view etag, std::string_view other) { return opaque(etag) == opaque(other); }

bool is_condition(std::string_view etag) { return !etag.empty() && !is_weak(etag); }

}  // namespace mox::file::s3
