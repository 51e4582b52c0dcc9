// SPDX-License-Identifier: Apache-2.0
//
// Health for kubelet's probes: whether the node's devices are offered, not only whether the process
// runs.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_HEALTH_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_HEALTH_H_

#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "device-plugin/devices/time_point.h"
#include "kube/http/page_server.h"

namespace railhead::device_plugin {

// State of the agent's loop, reported by the loop. Thread-safe.
class Health {
 public:
  struct Beat {
    bool has_devices = false;
    bool kubelet = false;  // kubelet.sock exists
    bool serving = false;  // kubelet has an open stream
  };

  void Report(const Beat& beat, TimePoint now);

  // Returns OK if kubelet has an open stream, or there is no device to offer.
  absl::Status Ready() const;

  // Returns OK unless the loop is stuck, or has failed for two minutes to register with a kubelet
  // whose socket exists: a restart may help then.
  absl::Status Live(TimePoint now) const;

 private:
  mutable std::mutex mutex_;
  Beat beat_;
  std::optional<TimePoint> beat_at_;
  std::optional<TimePoint> unheard_since_;
};

// Returns the pages /healthz (Live) and /readyz (Ready): 200, or 503 with the reason as text.
// `health` must outlive their server.
kube::PageServer::Pages HealthPages(const Health& health);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_HEALTH_H_
