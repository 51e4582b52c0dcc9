// SPDX-License-Identifier: Apache-2.0
//
// One watched kind of objects: the cache, the watches that keep it equal to the API server, and the
// subscribers. Used by ClusterCaches.
//
// Threads: the setup thread calls Subscribe, then Start. One thread at a time calls the subscribers
// of a kind, in the order of subscription. A subscriber to two kinds may be called on two threads
// at once. All other methods are thread-safe.
#ifndef RAILHEAD_OPERATOR_CLUSTER_WATCHED_KIND_H_
#define RAILHEAD_OPERATOR_CLUSTER_WATCHED_KIND_H_

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kube/cache/informer.h"
#include "kube/client.h"

namespace railhead::op {

// Last errors of the lists and watches of a resource. Thread-safe.
class WatchTrouble {
 public:
  explicit WatchTrouble(std::string resource) : resource_(std::move(resource)) {}
  // Logs `end` if it is an error and differs from the last one logged for this namespace.
  void Note(const std::string& space, const absl::Status& end);
  // Returns the error message of the first namespace that has one; empty if none.
  std::string Message() const;

 private:
  const std::string resource_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> messages_;  // by namespace; guarded by mutex_
};

template <typename T>
class WatchedKind {
 public:
  using Value = typename kube::Cache<T>::Value;
  using OnChange = typename kube::Cache<T>::OnChange;

  // `collections` as in Informer. `api` must outlive the kind. `strip` is called as subscribers
  // are.
  WatchedKind(const std::vector<kube::ReflectorOptions>& collections, kube::Api* api,
              typename kube::Cache<T>::Strip strip)
      : trouble_(collections.front().collection.resource),
        informer_(collections, api, std::move(strip),
                  {[this](const std::string& key, const Value& before, const Value& after) {
                     for (const auto& [on_change, on_synced] : subscribers_) {
                       on_change(key, before, after);
                     }
                   },
                   [this] {
                     for (const auto& [on_change, on_synced] : subscribers_) on_synced();
                   },
                   [this](const std::string& space, const absl::Status& end) {
                     trouble_.Note(space, end);
                   }}) {}

  // Calls `on_change` for each change, as in Cache, and `on_synced` after the first list. Both must
  // return quickly.
  void Subscribe(
      OnChange on_change, std::function<void()> on_synced = [] {}) {
    subscribers_.emplace_back(std::move(on_change), std::move(on_synced));
  }
  // Call once.
  void Start() { informer_.Start(); }
  // Ends the threads: within about a second, or after the API calls in progress. Join waits for
  // them.
  void RequestStop() { informer_.RequestStop(); }
  void Join() { informer_.Join(); }

  const kube::Cache<T>& cache() const { return informer_.cache(); }
  // Returns true after the first list; the cache keeps its content while the server is away.
  bool Synced() const { return informer_.Synced(); }
  kube::InformerState State() const { return informer_.State(); }
  std::string Trouble() const { return trouble_.Message(); }

 private:
  std::vector<std::pair<OnChange, std::function<void()>>> subscribers_;  // not changed after Start
  WatchTrouble trouble_;
  kube::Informer<T> informer_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CLUSTER_WATCHED_KIND_H_
