// SPDX-License-Identifier: Apache-2.0
//
// Kubernetes Events, which `kubectl describe` shows below an object. Used by the agent and the
// operator.
#ifndef RAILHEAD_KUBE_EVENTS_H_
#define RAILHEAD_KUBE_EVENTS_H_

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/monotonic.h"

namespace railhead::kube {

struct Event {
  // The object. kubectl finds events of a node by the node's name as uid.
  std::string api;    // "v1"
  std::string kind;   // "Node"
  std::string space;  // empty for a cluster-scoped object
  std::string name;
  std::string uid;

  bool warning = false;
  std::string reason;   // one word in CamelCase, for machines
  std::string message;  // for people; made printable, and cut after 1024 bytes
  // Part of the object that the event is about. If set, the message is not part of the event's
  // identity: recording it again with another message changes nothing.
  std::optional<std::string> part = std::nullopt;
  // Time of day at which it happened; nullopt: when it is recorded.
  std::optional<absl::Time> at = std::nullopt;
};

// Token bucket: burst and refill interval.
struct EventLimits {
  double burst = 25;
  absl::Duration refill = absl::Seconds(10);
};

// Writes Events. Not thread-safe.
class EventRecorder {
 public:
  // `component`: reporter ("railhead-device-plugin"); `host`: its node or replica. `clock` is the
  // time of day; `monotonic` drives the limits. `api` must outlive the recorder. Rights needed:
  // create events; patch, if an event without a part may be repeated.
  EventRecorder(Api* api, std::string component, std::string host,
                std::function<absl::Time()> clock, EventLimits limits = {},
                std::function<absl::Time()> monotonic = MonotonicNow);

  // Creates the event, or increments its count if it was recorded before. If another process has
  // recorded it, it becomes as recent as this. ResourceExhausted above the limits; else the
  // server's error.
  absl::Status Record(const Event& event);
  // Returns the time until the limits allow the next event; zero if they do now.
  absl::Duration UntilAllowed();

 private:
  Api* const api_;
  const std::string component_;
  const std::string host_;
  const std::function<absl::Time()> clock_;
  const std::function<absl::Time()> monotonic_;
  const EventLimits limits_;
  std::map<std::string, int> counts_;  // of the events recorded so far, by namespace and name
  double tokens_;
  absl::Time filled_at_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_EVENTS_H_
