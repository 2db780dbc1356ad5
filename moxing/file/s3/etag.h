// ETags, as stores call versions of an object (RFC 9110, 8.8.3). A strong one is kept without its quotes, a
// weak one as it stands, W/"...": no condition of a request matches it, and it says nothing of the bytes.
#pragma once

#include <string>
#include <string_view>

namespace mox::file::s3 {

// Of a header or a document.
std::string parse_etag_text(std::string_view text);
// For a header or a document.
std::string etag_text(const std::string& etag);

bool is_weak(std::string_view etag);

// Whether both stand for one version, as far as they tell: one that is weak in some answers is the same.
bool same_version(std::string_view etag, std::string_view other);

// Whether If-Match may ask for it: it is known, and strong.
bool is_condition(std::string_view etag);

}  // namespace mox::file::s3
