// SPDX-License-Identifier: Apache-2.0
//
// Informer, as in client-go: a cache and the threads that keep it equal to a collection of the API
// server, or to the collections of some namespaces. Used by the operator, with one informer per
// kind of objects.
#ifndef RAILHEAD_KUBE_CACHE_INFORMER_H_
#define RAILHEAD_KUBE_CACHE_INFORMER_H_

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/cache/cache.h"
#include "kube/cache/merged_lists.h"
#include "kube/cache/reflector.h"
#include "kube/client.h"
#include "kube/monotonic.h"

namespace railhead::kube {

// State of an informer, for metrics and readiness.
struct InformerState {
  std::string resource;  // plural, as in RBAC
  bool synced = false;   // the first list is complete
  size_t objects = 0;
  // Time since the server last sent an event, a bookmark or a list. A healthy watch sends something
  // once a minute: after several minutes the cache may be stale.
  absl::Duration age = absl::InfiniteDuration();
};

// Rights needed: list and watch.
template <typename T>
class Informer final : private ObjectSink {
 public:
  // Called on the informer's threads; all are required. Several collections have a thread each, and
  // then `on_end` may be called concurrently, the others by one thread at a time.
  struct Callbacks {
    typename Cache<T>::OnChange on_change;
    // The first list is complete. Start work that needs all objects here.
    std::function<void()> on_synced;
    // As in Reflector, with the namespace of the collection.
    std::function<void(const std::string& space, const absl::Status&)> on_end;
  };

  // `collections` are one or more of one resource, each in another namespace. `api` must outlive
  // the informer.
  Informer(const std::vector<ReflectorOptions>& collections, Api* api,
           typename Cache<T>::Strip strip, Callbacks callbacks)
      : resource_(collections.front().collection.resource),
        on_synced_(std::move(callbacks.on_synced)),
        cache_(std::move(strip), std::move(callbacks.on_change)),
        lists_(this, collections.size()) {
    for (size_t i = 0; i < collections.size(); ++i) {
      ObjectSink* const sink = collections.size() == 1 ? this : lists_.source(i);
      reflectors_.push_back(std::make_unique<Reflector>(
          collections[i], api, sink, SystemRandom(), MonotonicNow,
          [on_end = callbacks.on_end, space = collections[i].collection.space](
              const absl::Status& end) { on_end(space, end); }));
    }
  }
  ~Informer() override { RequestStop(); }

  // Call once.
  void Start() {
    for (const auto& reflector : reflectors_) {
      threads_.emplace_back(
          [&reflector = *reflector](const std::stop_token& stop) { reflector.Run(stop); });
    }
  }
  // Ends the threads within about a second, or after the calls in progress.
  void RequestStop() {
    for (std::jthread& thread : threads_) thread.request_stop();
  }
  // Waits for that end.
  void Join() {
    for (std::jthread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  // Thread-safe from here on.
  const Cache<T>& cache() const { return cache_; }
  // Returns true after the first list; the cache keeps its content while the server is away.
  bool Synced() const { return synced_.load(); }
  InformerState State() const {
    absl::Time heard = absl::InfiniteFuture();
    for (const auto& reflector : reflectors_) heard = std::min(heard, reflector->HeardAt());
    return {resource_, Synced(), cache_.size(), MonotonicNow() - heard};
  }

 private:
  void BeginList() override { cache_.BeginList(); }
  void Put(const Json& object) override { cache_.Put(object); }
  void Remove(const Json& object) override { cache_.Remove(object); }
  void EndList() override {
    cache_.EndList();
    if (!synced_.exchange(true)) on_synced_();
  }

  const std::string resource_;
  const std::function<void()> on_synced_;
  std::atomic<bool> synced_{false};
  Cache<T> cache_;
  MergedLists lists_;                                   // used if there are several reflectors
  std::vector<std::unique_ptr<Reflector>> reflectors_;  // by collection
  std::vector<std::jthread> threads_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_CACHE_INFORMER_H_
