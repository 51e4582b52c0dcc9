// SPDX-License-Identifier: Apache-2.0
//
// Tells people of something that happened to an object: what `kubectl describe` shows below it.
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
  // The object. kubectl finds the events of a node by its name as the uid.
  std::string api;    // "v1"
  std::string kind;   // "Node"
  std::string space;  // empty for a cluster-scoped object
  std::string name;
  std::string uid;

  bool warning = false;
  std::string reason;   // one word in CamelCase, for machines
  std::string message;  // for people; made printable, and cut after 1024 bytes
  // What of the object it is about. Where it is set, the message says nothing of which event this
  // is: told again with another message it is the same one, and stays as it was, uncounted.
  std::optional<std::string> part = std::nullopt;
};

// How much may be told: so many at once, and one more whenever so much time has passed.
struct EventLimits {
  double burst = 25;
  absl::Duration refill = absl::Seconds(10);
};

// Not thread-safe.
class EventRecorder {
 public:
  // `component`: who tells ("railhead-device-plugin"); `host`: the node or replica it runs on.
  // `clock` is the time of day, `monotonic` what the limits go by. `api` must outlive the recorder.
  // Rights needed: create events; and patch, by who tells the same twice without a part.
  EventRecorder(Api* api, std::string component, std::string host,
                std::function<absl::Time()> clock, EventLimits limits = {},
                std::function<absl::Time()> monotonic = MonotonicNow);

  // Makes the event, or counts it once more when the same was told before. ResourceExhausted when
  // more was told lately than the limits allow; else the server's error.
  absl::Status Record(const Event& event);

 private:
  bool HasToken(absl::Time now);

  Api* const api_;
  const std::string component_;
  const std::string host_;
  const std::function<absl::Time()> clock_;
  const std::function<absl::Time()> monotonic_;
  const EventLimits limits_;
  std::map<std::string, int> counts_;  // of the events told so far, by namespace and name
  double tokens_;
  absl::Time filled_at_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_EVENTS_H_
