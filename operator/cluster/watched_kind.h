// SPDX-License-Identifier: Apache-2.0
//
// One kind of objects of the cluster as a replica keeps it: the cache, the one watch that keeps it
// equal to the API server, and its readers. Used by ClusterCaches.
//
// Threads: the thread that sets up calls Subscribe, then Start. Each kind has one thread, on which
// the subscribers are called, in the order in which they subscribed; a subscriber to two kinds is
// called by two threads. All other methods are thread-safe.
#ifndef RAILHEAD_OPERATOR_CLUSTER_WATCHED_KIND_H_
#define RAILHEAD_OPERATOR_CLUSTER_WATCHED_KIND_H_

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kube/client.h"
#include "kube/informer.h"

namespace railhead::op {

// How the last list or watch of a resource ended. Thread-safe.
class WatchTrouble {
 public:
  explicit WatchTrouble(std::string resource) : resource_(std::move(resource)) {}
  // Logs `end` if it is an error, and not the one that was logged last.
  void Note(const absl::Status& end);
  // Returns the error's message; empty if there is none.
  std::string Message() const;

 private:
  const std::string resource_;
  mutable std::mutex mutex_;
  std::string message_;  // guarded by mutex_
};

template <typename T>
class WatchedKind {
 public:
  using Value = typename kube::Cache<T>::Value;
  using OnChange = typename kube::Cache<T>::OnChange;

  // `api` must outlive the kind. `strip` is called on the kind's thread.
  WatchedKind(kube::ReflectorOptions options, kube::Api* api, typename kube::Cache<T>::Strip strip)
      : trouble_(options.collection.resource),
        informer_(std::move(options), api, std::move(strip),
                  {[this](const std::string& key, const Value& before, const Value& after) {
                     for (const auto& [on_change, on_synced] : subscribers_) {
                       on_change(key, before, after);
                     }
                   },
                   [this] {
                     for (const auto& [on_change, on_synced] : subscribers_) on_synced();
                   },
                   [this](const absl::Status& end) { trouble_.Note(end); }}) {}

  // Has `on_change` called for each change, as in Cache, and `on_synced` when the first list is
  // complete. Both must return soon.
  void Subscribe(
      OnChange on_change, std::function<void()> on_synced = [] {}) {
    subscribers_.emplace_back(std::move(on_change), std::move(on_synced));
  }
  // Call once.
  void Start() { informer_.Start(); }
  // Ends the thread, for which Join waits: about a second, or the API call in progress.
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
