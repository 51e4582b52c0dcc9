// SPDX-License-Identifier: Apache-2.0
//
// What kubelet's probes are told: not that the process lives, but that the node's devices are
// offered.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_HEALTH_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_HEALTH_H_

#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "device-plugin/kubelet/registration.h"
#include "kube/page_server.h"

namespace railhead::device_plugin {

// The state of the agent's loop, as the loop reports it. Thread-safe.
class Health {
 public:
  struct Beat {
    bool has_devices = false;
    bool kubelet = false;  // kubelet.sock is there
    bool serving = false;  // kubelet holds our stream
  };

  void Report(const Beat& beat, TimePoint now);

  // Ok while kubelet holds our stream, or there is no device to offer.
  absl::Status Ready() const;

  // Ok unless the loop is stuck, or has tried in vain for two minutes to be heard by a kubelet that
  // is there: then a new process may do better.
  absl::Status Live(TimePoint now) const;

 private:
  mutable std::mutex mutex_;
  Beat beat_;
  std::optional<TimePoint> beat_at_;
  std::optional<TimePoint> unheard_since_;
};

// The pages /healthz (Live) and /readyz (Ready): 200, or 503 with the reason in the text. `health`
// must outlive whoever serves them.
kube::PageServer::Pages HealthPages(const Health& health);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_HEALTH_H_
