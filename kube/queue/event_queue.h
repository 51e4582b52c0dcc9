// SPDX-License-Identifier: Apache-2.0
//
// Bounded queue of Events and their sender, for controllers that must not wait for the API server
// because of an Event. Used by the operator's controller of gangs.
//
//   EventQueue queue({}, EventRecorder(...), ...);
//   std::jthread sender([&](const std::stop_token& stop) { queue.Run(stop); });
//   queue.Add(event, "team/job");
#ifndef RAILHEAD_KUBE_QUEUE_EVENT_QUEUE_H_
#define RAILHEAD_KUBE_QUEUE_EVENT_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>

#include "absl/time/time.h"
#include "kube/backoff.h"
#include "kube/events.h"
#include "kube/monotonic.h"

namespace railhead::kube {

struct EventQueueOptions {
  size_t max_events = 512;                    // of those that wait; beyond, the oldest is dropped
  absl::Duration max_age = absl::Minutes(5);  // then an Event that cannot be sent is dropped
  // Pauses of a namespace whose last Event could not be sent.
  BackoffOptions backoff = {absl::Milliseconds(500), absl::Seconds(30)};
};

// Sends the oldest Event first, one at a time. If the server does not accept one now, the Events of
// its namespace wait, and those of others do not: a webhook may be unavailable for some namespaces
// only. An Event that the server rejects for good is lost, as is a dropped one.
class EventQueue {
 public:
  // `recorder` is used by Run's thread alone, and sets the pace. `time_of_day`: wall clock.
  // `clock` is monotonic; both are called concurrently. `log` is called with lines for the log, by
  // any thread.
  EventQueue(EventQueueOptions options, EventRecorder recorder, Random random,
             std::function<absl::Time()> time_of_day, std::function<void(const std::string&)> log,
             std::function<absl::Time()> clock = MonotonicNow);

  // Queues an Event that happens now. `tag`: any name, for TakeLost. Thread-safe; never waits.
  void Add(Event event, const std::string& tag);
  // Returns the tags of Events lost since the last call. Thread-safe.
  std::set<std::string> TakeLost();

  // Sends until `stop`. Events that wait then are not sent.
  void Run(const std::stop_token& stop);
  // Sends the Event that is due and returns zero; if none is due, returns the time until then,
  // infinite for an empty queue. For Run, and for tests instead of it.
  absl::Duration Step();

 private:
  struct Waiting {
    Event event;
    std::string tag;
    absl::Time added;  // by clock_
  };
  struct Rest {
    int failures = 0;
    absl::Time until;
  };

  // Callers hold mutex_.
  void Lose(const Waiting& waiting);
  void Drop();
  absl::Duration UntilDue(absl::Time now, std::deque<Waiting>::iterator& next);
  void Settle(Waiting sent, const absl::Status& recorded, absl::Time now);

  const EventQueueOptions options_;
  EventRecorder recorder_;  // used by Run's thread only
  const Random random_;
  const std::function<absl::Time()> time_of_day_;
  const std::function<void(const std::string&)> log_;
  const std::function<absl::Time()> clock_;

  std::mutex mutex_;  // guards all below
  std::condition_variable_any added_;
  bool changed_ = false;               // since the last Step
  std::deque<Waiting> waiting_;        // oldest first
  std::map<std::string, Rest> rests_;  // by namespace
  std::set<std::string> lost_;         // tags
  size_t dropped_ = 0;                 // since the queue was last empty
  std::string rejection_;              // as logged last
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_QUEUE_EVENT_QUEUE_H_
