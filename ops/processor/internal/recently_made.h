// What was made last, by what it was made of: for what takes long to make and is asked for again and again.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <utility>

namespace mox {

// At most `most` values, of which the one that was not asked for the longest goes first. A key is compared
// with all of them. Any thread.
template <typename Key, typename Value, typename Same = std::equal_to<Key>>
class RecentlyMade {
 public:
  explicit RecentlyMade(size_t most) : most_(most) {}

  // The value of `key`, or what `make()` returns, which is called without a lock.
  template <typename Make>
  Value of(const Key& key, Make&& make) {
    {
      const std::lock_guard lock(mutex_);
      for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
        if (Same()(entry->first, key)) {
          entries_.splice(entries_.begin(), entries_, entry);
          return entry->second;
        }
    }
    Value value = make();
    const std::lock_guard lock(mutex_);
    entries_.emplace_front(key, value);
    if (entries_.size() > most_) entries_.pop_back();
    return value;
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  std::list<std::pair<Key, Value>> entries_;  // the one that was asked for last comes first
};

}  // namespace mox
