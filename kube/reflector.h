// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_REFLECTOR_H_
#define RAILHEAD_KUBE_REFLECTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/backoff.h"
#include "kube/client.h"
#include "kube/json.h"
#include "kube/watch_decoder.h"

namespace railhead::kube {

// What keeps the objects of a collection; Cache does. Called by one thread.
class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  virtual void BeginList() = 0;
  virtual void Put(const Json& object) = 0;
  virtual void Remove(const Json& object) = 0;
  // What was not put since BeginList is gone. A list that broke off has no end; another one begins.
  virtual void EndList() = 0;
};

struct ReflectorOptions {
  ObjectRef collection;
  int page_size = 100;                               // at first
  absl::Duration shortest_watch = absl::Minutes(5);  // up to twice as long, by chance
  absl::Duration silence = absl::Minutes(3);         // as of WatchOptions
  BackoffOptions backoff = {};                       // between tries
  // The kind may not be there (yet). Of any other a 404 is no answer: somebody between us and the
  // server may give it, and objects that are still there must not seem gone.
  bool may_be_unknown = false;
};

// Keeps a sink equal to a collection of the API server, by a list and a watch from there on, for as
// long as it runs.
//
// Lists are of the server's latest state (no resourceVersion, so that one never goes back in time),
// in pages of one version each. A watch that ended is taken up where it was; there is a new list
// only after an answer which says that this is no use (410 Gone, or what is no watch at all) and
// after a silent watch, for the server may never send anything from a version that it lost. A
// server that does not know a kind that may be unknown (404) has no objects of it: the sink is
// empty then, and the list is tried again.
//
// Objects may be of any size. After a page that was too large, or not there in time, pages are half
// as long from then on: the same list would fail again.
class Reflector {
 public:
  // `api` and `sink` must outlive the reflector. `random` and `clock` (monotonic) are used by Run's
  // thread alone. `on_end` is told of every list that failed and every watch that ended, OK when
  // the server ended it, for the log; it is called by Run's thread.
  Reflector(ReflectorOptions options, Api* api, ObjectSink* sink, Random random,
            std::function<absl::Time()> clock, std::function<void(const absl::Status&)> on_end);

  // Returns after `stop`, within about a second.
  void Run(const std::stop_token& stop);

  // One list or one watch, whichever is due. The pause before the next one.
  absl::Duration Step(const std::stop_token& stop);

  // The sink has had the end of a list. Thread-safe.
  bool Synced() const { return synced_.load(); }
  // When (by `clock`) the server last said something that makes the sink what the collection is:
  // the end of a list, an event, a bookmark. InfinitePast before the first. Thread-safe.
  absl::Time HeardAt() const;

 private:
  absl::Status List();
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
  std::string version_;  // the sink is as of this one; empty when a list is due
  absl::Time listed_at_ = absl::InfinitePast();
  std::atomic<bool> synced_{false};
  std::atomic<int64_t> heard_at_nanos_{0};  // when synced_
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_REFLECTOR_H_
