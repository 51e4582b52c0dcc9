// SPDX-License-Identifier: Apache-2.0
//
// Keeps a sink equal to a collection of the API server, as client-go's Reflector: one list, then a
// watch from its version. Used by Informer, which adds a cache and a thread.
#ifndef RAILHEAD_KUBE_CACHE_REFLECTOR_H_
#define RAILHEAD_KUBE_CACHE_REFLECTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/backoff.h"
#include "kube/cache/watch_decoder.h"
#include "kube/client.h"
#include "kube/json.h"

namespace railhead::kube {

// Receiver of a collection's objects, implemented by Cache and Informer. Called on one thread.
class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  virtual void BeginList() = 0;
  virtual void Put(const Json& object) = 0;
  virtual void Remove(const Json& object) = 0;
  // Removes objects that were not put since BeginList. An interrupted list has no EndList; a new
  // one begins.
  virtual void EndList() = 0;
};

struct ReflectorOptions {
  ObjectRef collection;
  int page_size = 100;                               // initial value
  absl::Duration shortest_watch = absl::Minutes(5);  // random up to twice this
  absl::Duration silence = absl::Minutes(3);         // as in WatchOptions
  BackoffOptions backoff = {};                       // between attempts
  // True if the kind may be absent (a CRD). For other kinds a 404 is an error: a proxy may have
  // sent it, and existing objects must not seem deleted.
  bool may_be_unknown = false;
  // True if the right to the collection may be taken away, as with a namespace that is deleted. For
  // other collections a 403 is an error: authorization may be late after a restart.
  bool may_be_forbidden = false;
};

// Lists read the latest state (no resourceVersion, so that they never go back in time) in pages of
// one version. After a watch ends, a new one resumes at its version. A new list is needed only if
// the server rejects that version (410 Gone, or a response that is not a watch), and after a watch
// timed out, as the server may never send anything from a version that it lost. If the kind may be
// absent, a 404 empties the sink, and the list is retried; likewise a 403 if that may be.
//
// Objects may be of any size. A page that is too large is requested again with half as many
// objects, down to one. After a page that timed out, pages are halved, because it would fail again.
//
// A page after the first is requested again a few times if the server is unavailable or too slow:
// a list of a large collection that began anew each time might never be complete.
class Reflector {
 public:
  // `api` and `sink` must outlive the reflector. Run's thread alone calls `random` and `clock`
  // (monotonic), and calls `on_end` for each failed list and each ended watch (OK if the server
  // ended it), for the log.
  Reflector(ReflectorOptions options, Api* api, ObjectSink* sink, Random random,
            std::function<absl::Time()> clock, std::function<void(const absl::Status&)> on_end);

  // Returns within about a second after `stop`.
  void Run(const std::stop_token& stop);

  // Performs the list or watch that is due and returns the delay before the next.
  absl::Duration Step(const std::stop_token& stop);

  // Returns true after the first complete list. Thread-safe.
  bool Synced() const { return synced_.load(); }
  // Returns the time (by `clock`) at which the sink was last known to be current: the end of a
  // list, an event or a bookmark. InfinitePast before the first. Thread-safe.
  absl::Time HeardAt() const;

 private:
  absl::Status List(const std::stop_token& stop);
  // Reads the page of `list`, whose limit it may reduce.
  absl::StatusOr<ListPage> ReadPage(ListOptions& list, const std::stop_token& stop);
  absl::Status WatchOn(const std::stop_token& stop);
  absl::Status Take(const WatchEvent& event);
  void Hear();

  const ReflectorOptions options_;
  Api* const api_;
  ObjectSink* const sink_;
  const Random random_;
  const std::function<absl::Time()> clock_;
  const std::function<void(const absl::Status&)> on_end_;
  Backoff backoff_;
  int page_size_;
  std::string version_;  // version of the sink; empty if a list is due
  absl::Time listed_at_ = absl::InfinitePast();
  std::atomic<bool> synced_{false};
  std::atomic<int64_t> heard_at_nanos_{0};  // when synced_
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_CACHE_REFLECTOR_H_
