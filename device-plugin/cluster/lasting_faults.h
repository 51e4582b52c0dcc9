// SPDX-License-Identifier: Apache-2.0
//
// Events of faults that last. The API server deletes an Event an hour after its last change, so the
// event of a fault that lasts longer is repeated. Pure; used by Agent. Not thread-safe.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_LASTING_FAULTS_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_LASTING_FAULTS_H_

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "kube/events.h"

namespace railhead::device_plugin {

class LastingFaults {
 public:
  using Clock = std::chrono::steady_clock;

  // `interval`: time between two reports of a fault.
  explicit LastingFaults(Clock::duration interval) : interval_(interval) {}

  // Begins a fault, or changes it; the caller has just reported `event`. `fault`: any unique name.
  void Begin(const std::string& fault, kube::Event event, Clock::time_point now);
  // Ends a fault, if it lasts.
  void End(const std::string& fault) { faults_.erase(fault); }

  // Returns the events to report again now.
  std::vector<kube::Event> TakeDue(Clock::time_point now);

 private:
  struct Fault {
    kube::Event event;
    Clock::time_point due;
  };

  const Clock::duration interval_;
  std::map<std::string, Fault> faults_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_LASTING_FAULTS_H_
