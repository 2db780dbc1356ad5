#include "moxing/file/masked_address.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/nearest_name.h"

namespace mox::file {
namespace {

constexpr std::string_view kSeparators = " \t\r\n,";  // between several addresses in one text
constexpr std::string_view kBehindScheme = "://";
constexpr std::string_view kMarks = "?&;#";  // before a name in a query
constexpr size_t kNowhere = std::string_view::npos;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter_or_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_separator(char c) { return kSeparators.find(c) != kNowhere; }

struct Range {
  size_t begin, end;
};

// `text` with the mask in place of each range.
std::string masked(std::string_view text, const std::vector<Range>& ranges) {
  std::string result;
  size_t shown = 0;
  for (const Range& range : ranges) {
    result.append(text.substr(shown, range.begin - shown)).append(kMask);
    shown = range.end;
  }
  return result.append(text.substr(shown));
}

// A machine by its number, which nobody is called.
bool is_numbered_machine(std::string_view name) {
  return name == "localhost" || (std::ranges::count(name, '.') == 3 &&
                                 std::ranges::all_of(name, [](char c) { return is_digit(c) || c == '.'; }));
}

// Whether what stands between a scheme and the path can be nothing but a host. A user's name, with a word
// that holds a slash as it is, looks much like one: me:80/hunter2@host, hunter/2@host.
bool is_surely_host(std::string_view text, const std::string& scheme) {
  if (text.starts_with('[')) return true;
  const size_t colon = text.find(':');
  if (scheme == "file") return colon == kNowhere;
  if (scheme == "s3" || scheme == "obs") return colon == kNowhere && !text.empty();  // a bucket
  if (colon == kNowhere) return text == "localhost" || text.find('.') != kNowhere;
  return is_numbered_machine(text.substr(0, colon)) && std::ranges::all_of(text.substr(colon + 1), is_digit);
}

// Finds who asks in a text of several words, of which the first may follow a scheme: each time what is up to
// the last @ that may belong to it. In doubt a host is masked rather than a secret shown.
class LoginFinder {
 public:
  LoginFinder(std::string_view text, std::optional<std::string> scheme) : text_(text) {
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find_first_of(kSeparators, begin), text.size());
      const std::string_view word = text.substr(begin, end - begin);
      if (begin == 0 && scheme) {
        read_behind_scheme(word, *scheme);
      } else {
        read_word(begin, word);
      }
      begin = end + 1;
    }
  }

  std::vector<Range> logins() && { return std::move(logins_); }

 private:
  enum class State {
    kNone,
    kOpen,   // a name with a colon, and no @ yet
    kEnded,  // at an @, and another one behind a separator may be the true one
  };

  void read_behind_scheme(std::string_view word, const std::string& scheme) {
    const std::string_view authority = word.substr(0, word.find_first_of("/?#"));
    const size_t own_at = authority.rfind('@');
    const std::string_view host = own_at == kNowhere ? authority : authority.substr(own_at + 1);
    const bool is_sure = is_surely_host(host, scheme);
    if (const size_t at = is_sure ? own_at : word.rfind('@'); at != kNowhere) {
      end_at(at, word.substr(at + 1));
    } else if (!is_sure && word.find(':') != kNowhere) {
      state_ = State::kOpen;
    }
  }

  void read_word(size_t begin, std::string_view word) {
    const size_t at = word.rfind('@');
    const bool was_masked = word.starts_with(kMask) && word.substr(kMask.size()).starts_with('@');
    if (at != kNowhere && (state_ == State::kOpen ||
                           (state_ == State::kEnded && !was_masked && !has_login_before(begin, word, at)))) {
      end_at(begin + at, word.substr(at + 1));
      return;
    }
    const bool is_path = (word.starts_with('/') && !word.starts_with("//")) || word.starts_with("./") ||
                         word.starts_with("../") || word.starts_with("~/");
    if (is_path || state_ == State::kOpen) return;
    if (at != kNowhere && (was_masked || has_login_before(begin, word, at))) {
      begin_at(begin, word);
      end_at(begin + at, word.substr(at + 1));
    } else if (colon_in(begin, word) != kNowhere) {
      begin_at(begin, word);
      state_ = State::kOpen;
    }
  }

  // The one between a name and what it is proved with; not the one of "contact: me@host".
  size_t colon_in(size_t begin, std::string_view word) const {
    const size_t colon = word.find(':'), behind = begin + colon + 1;
    if (colon == kNowhere || (colon + 1 == word.size() && (behind == text_.size() || text_[behind] != ',')))
      return kNowhere;
    return colon;
  }

  bool has_login_before(size_t begin, std::string_view word, size_t at) const {
    const size_t colon = colon_in(begin, word);
    return colon != kNowhere && colon + 1 < at;
  }

  void begin_at(size_t begin, std::string_view word) {
    begin_ = begin + (word.starts_with("//") ? 2 : 0);
    is_new_ = true;
  }

  // `behind`: the rest of the word. With a colon and no port it is none of a host: me@corp.com:word.
  void end_at(size_t at, std::string_view behind) {
    if (is_new_) logins_.push_back({begin_, at});
    logins_.back().end = at;
    is_new_ = false;
    const std::string_view host = behind.substr(0, behind.find_first_of("/?#"));
    const size_t colon = host.starts_with('[') ? kNowhere : host.find(':');
    const bool has_port = colon == kNowhere || std::ranges::all_of(host.substr(colon + 1), is_digit);
    state_ = has_port ? State::kEnded : State::kOpen;
  }

  std::string_view text_;
  std::vector<Range> logins_;
  State state_ = State::kNone;
  size_t begin_ = 0;    // of the login that is read
  bool is_new_ = true;  // whether it is not among logins_ yet
};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Whether a query gives a secret, or a part of it, under this name.
bool is_secret_name(std::string_view spelt) {
  std::string name;
  for (size_t i = 0; i < spelt.size(); ++i) {
    if (spelt[i] == '%')
      i += 2;  // a sign that is written so
    else if (is_letter_or_digit(spelt[i]))
      name += spelt[i];
  }
  name = mox::internal::lower_case(name);
  while (!name.empty() && is_digit(name.back())) name.pop_back();
  for (const std::string_view end :
       {"token", "secret", "signature", "sig", "password", "passwd", "passphrase", "pwd", "credential",
        "credentials", "key", "keyid", "accessid", "auth", "authorization", "jwt", "session", "sessionid"})
    if (name.ends_with(end)) return true;
  return is_one_of(name, {"pass", "pw", "sas", "ak", "sk"});
}

// Where the value of a secret begins whose name follows the mark before `name`; kNowhere if none does.
size_t secret_value(std::string_view text, size_t name) {
  const size_t equals = text.find_first_of("=?&;# \t\r\n,/", name);
  const bool is_secret =
      equals != kNowhere && text[equals] == '=' && is_secret_name(text.substr(name, equals - name));
  return is_secret ? equals + 1 : kNowhere;
}

// The values of the secrets in queries: ?token=..., &X-Amz-Signature=...; up to the next & or #.
std::vector<Range> secrets_in_queries(std::string_view text) {
  std::vector<Range> secrets;
  for (size_t mark = text.find_first_of(kMarks); mark != kNowhere; mark = text.find_first_of(kMarks, mark)) {
    const size_t begin = secret_value(text, ++mark);
    if (begin == kNowhere) continue;
    mark = std::min(text.find_first_of("&#", begin), text.size());
    size_t end = mark;
    while (end > begin && is_separator(text[end - 1])) --end;
    if (end > begin) secrets.push_back({begin, end});
  }
  return secrets;
}

// Without the addresses that have a scheme, but for one at the begin.
std::string masked_part(std::string_view text, std::optional<std::string> scheme) {
  const std::string without_logins = masked(text, LoginFinder(text, std::move(scheme)).logins());
  return masked(without_logins, secrets_in_queries(without_logins));
}

struct Scheme {
  size_t begin, end;  // of the name; kNowhere: there is none
};

// The first scheme from `begin` on. What follows a colon or an @ is a part of somebody's name and word.
Scheme scheme_from(std::string_view text, size_t begin) {
  for (size_t end = text.find(kBehindScheme, begin); end != kNowhere;
       end = text.find(kBehindScheme, end + 1)) {
    size_t first = end;
    while (first > begin && (is_letter_or_digit(text[first - 1]) || text[first - 1] == '+' ||
                             text[first - 1] == '-' || text[first - 1] == '.'))
      --first;
    if (first < end && (first == begin || (text[first - 1] != ':' && text[first - 1] != '@')))
      return {first, end};
  }
  return {kNowhere, kNowhere};
}

}  // namespace

std::string masked_address(std::string_view text) {
  Scheme scheme = scheme_from(text, 0);
  std::string result = masked_part(text.substr(0, scheme.begin), std::nullopt);
  while (scheme.begin != kNowhere) {
    const size_t begin = scheme.end + kBehindScheme.size();
    const Scheme next = scheme_from(text, begin);
    const std::string_view name = text.substr(scheme.begin, scheme.end - scheme.begin);
    result.append(name).append(kBehindScheme);
    result += masked_part(text.substr(begin, next.begin == kNowhere ? kNowhere : next.begin - begin),
                          mox::internal::lower_case(name));
    scheme = next;
  }
  return result;
}

bool is_masked_address(std::string_view text) {
  const std::string mark = std::string(kMask) + '@';
  for (size_t at = text.find(mark); at != kNowhere; at = text.find(mark, at + 1))
    if (at == 0 || text[at - 1] == '/' || is_separator(text[at - 1])) return true;
  for (size_t mark = text.find_first_of(kMarks); mark != kNowhere;
       mark = text.find_first_of(kMarks, mark + 1)) {
    const size_t begin = secret_value(text, mark + 1);
    if (begin != kNowhere && text.substr(begin).starts_with(kMask)) return true;
  }
  return false;
}

}  // namespace mox::file
