// SPDX-License-Identifier: Apache-2.0
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

// What there is to say of a cache, whatever it holds.
struct InformerState {
  std::string resource;  // plural, as in RBAC
  bool synced = false;   // was complete once
  size_t objects = 0;
  // Since the server last said something about the collection. A watch that works is told something
  // once a minute, so more than some minutes means that the cache may be of the past.
  absl::Duration age = absl::InfiniteDuration();
};

// A cache, and the thread that keeps it equal to a collection of the API server. Rights needed:
// list and watch.
template <typename T>
class Informer final : private ObjectSink {
 public:
  // All of them are called by the informer's thread; none may be empty.
  struct Callbacks {
    typename Cache<T>::OnChange on_change;
    // The first list is complete: Synced. Whoever waits for all objects goes on from here.
    std::function<void()> on_synced;
    // As of Reflector.
    std::function<void(const absl::Status&)> on_end;
  };

  // `api` must outlive the informer.
  Informer(ReflectorOptions options, Api* api, typename Cache<T>::Strip strip, Callbacks callbacks)
      : resource_(options.collection.resource),
        on_synced_(std::move(callbacks.on_synced)),
        cache_(std::move(strip), std::move(callbacks.on_change)),
        reflector_(std::move(options), api, this, SystemRandom(), MonotonicNow,
                   std::move(callbacks.on_end)) {}

  // Once in an informer's life.
  void Start() {
    thread_ = std::jthread([this](const std::stop_token& stop) { reflector_.Run(stop); });
  }
  // Ends the thread, within about a second, or the time of the call that it is in.
  void RequestStop() { thread_.request_stop(); }

  // What is below is thread-safe.
  const Cache<T>& cache() const { return cache_; }
  // The cache was complete once; it stays as it was while the server is away.
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
