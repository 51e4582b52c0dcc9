// SPDX-License-Identifier: Apache-2.0
//
// Local copy of a collection of API objects, reduced to one value per object by a transform, so
// that the caller decides how much memory an object takes. Informer (informer.h) keeps it equal to
// the API server; the operator reads it.
#ifndef RAILHEAD_KUBE_CACHE_CACHE_H_
#define RAILHEAD_KUBE_CACHE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kube/cache/reflector.h"
#include "kube/json.h"

namespace railhead::kube {

// Returns "namespace/name", or the name of a cluster-scoped object.
inline std::string KeyOf(const Json& object) {
  const std::string space = StringAt(object, {"metadata", "namespace"});
  return absl::StrCat(space, space.empty() ? "" : "/", StringAt(object, {"metadata", "name"}));
}

// Cache with one value T per object. A reflector writes it; any thread reads it.
//
// T is comparable: a change of the object that leaves T equal is ignored, so heartbeats trigger no
// callback. Include metadata.uid in T if a deleted and recreated object must count as changed.
template <typename T>
class Cache final : public ObjectSink {
 public:
  using Value = std::shared_ptr<const T>;
  // Reduces an object to the stored value; nullopt if the cache must ignore the object.
  using Strip = std::function<std::optional<T>(const Json& object)>;
  // `before` is null for a new object, `after` for a deleted one. Called in order on the
  // reflector's thread, after readers can see the change; may read the cache.
  using OnChange =
      std::function<void(const std::string& key, const Value& before, const Value& after)>;

  explicit Cache(Strip strip, OnChange on_change = nullptr)
      : strip_(std::move(strip)), on_change_(std::move(on_change)) {}

  // Returns null if there is no such object.
  Value Get(absl::string_view key) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = entries_.find(key);
    return at == entries_.end() ? nullptr : at->second.value;
  }
  // Visits all objects in the order of their keys, in one generation, and returns that generation.
  // `visit` must not use the cache.
  uint64_t ForEach(
      const std::function<void(const std::string& key, const Value& value)>& visit) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [key, entry] : entries_) visit(key, entry.value);
    return generation_;
  }
  size_t size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return entries_.size();
  }
  // Increases with every change.
  uint64_t generation() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return generation_;
  }

  void BeginList() override { ++list_; }
  void Put(const Json& object) override {
    std::optional<T> stripped = strip_(object);
    Set(KeyOf(object), stripped ? std::make_shared<const T>(*std::move(stripped)) : nullptr);
  }
  void Remove(const Json& object) override { Set(KeyOf(object), nullptr); }
  void EndList() override {
    std::vector<std::string> gone;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& [key, entry] : entries_) {
        if (entry.list != list_) gone.push_back(key);
      }
    }
    for (const std::string& key : gone) Set(key, nullptr);
  }

 private:
  struct Entry {
    Value value;
    uint64_t list = 0;  // the list that last contained the object
  };

  void Set(const std::string& key, const Value& after) {
    Value before;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto at = entries_.find(key);
      if (at != entries_.end()) {
        at->second.list = list_;
        before = at->second.value;
      }
      if (before == after || (before != nullptr && after != nullptr && *before == *after)) return;
      ++generation_;
      if (after == nullptr) {
        entries_.erase(at);
      } else {
        entries_[key] = {after, list_};
      }
    }
    if (on_change_) on_change_(key, before, after);
  }

  const Strip strip_;
  const OnChange on_change_;
  uint64_t list_ = 0;  // used by the reflector's thread only

  mutable std::mutex mutex_;  // guards all below
  std::map<std::string, Entry, std::less<>> entries_;
  uint64_t generation_ = 0;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_CACHE_CACHE_H_
