// SPDX-License-Identifier: Apache-2.0
//
// Informer, as in client-go: a cache and the thread that keeps it equal to a collection of the API
// server. Used by the operator, with one informer per kind of objects.
#ifndef RAILHEAD_KUBE_INFORMER_H_
#define RAILHEAD_KUBE_INFORMER_H_

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/monotonic.h"
#include "kube/reflector.h"

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
  // Called on the informer's thread; all are required.
  struct Callbacks {
    typename Cache<T>::OnChange on_change;
    // The first list is complete. Start work that needs all objects here.
    std::function<void()> on_synced;
    // As in Reflector.
    std::function<void(const absl::Status&)> on_end;
  };

  // `api` must outlive the informer.
  Informer(ReflectorOptions options, Api* api, typename Cache<T>::Strip strip, Callbacks callbacks)
      : resource_(options.collection.resource),
        on_synced_(std::move(callbacks.on_synced)),
        cache_(std::move(strip), std::move(callbacks.on_change)),
        reflector_(std::move(options), api, this, SystemRandom(), MonotonicNow,
                   std::move(callbacks.on_end)) {}

  // Call once.
  void Start() {
    thread_ = std::jthread([this](const std::stop_token& stop) { reflector_.Run(stop); });
  }
  // Ends the thread within about a second, or after the call in progress.
  void RequestStop() { thread_.request_stop(); }
  // Waits for that end.
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

  // Thread-safe from here on.
  const Cache<T>& cache() const { return cache_; }
  // Returns true after the first list; the cache keeps its content while the server is away.
  bool Synced() const { return synced_.load(); }
  InformerState State() const {
    return {resource_, Synced(), cache_.size(), MonotonicNow() - reflector_.HeardAt()};
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
  Reflector reflector_;
  std::jthread thread_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_INFORMER_H_
