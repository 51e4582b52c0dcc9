// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/node_events.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "device-plugin/holdings/holdings.h"
#include "kube/events.h"

namespace railhead::device_plugin {
kube::Event NodeEvent(bool warning, const std::string& reason, const std::string& message) {
  kube::Event event;
  event.warning = warning;
  event.reason = reason;
  event.message = message;
  return event;
}

std::vector<kube::Event> RailEvents(const DeviceSnapshot& before, const DeviceSnapshot& after) {
  std::vector<kube::Event> events;
  for (const Device& device : after.devices) {
    const Device* old = before.Find(device.id);
    const bool was_usable = old == nullptr || old->hca.health.usable();
    if (was_usable == device.hca.health.usable()) continue;
    const std::string rail = absl::StrCat("rail ", device.hca.rail, " (", device.hca.name, ")");
    events.push_back(
        device.hca.health.usable()
            ? NodeEvent(false, "RailUp", absl::StrCat(rail, " carries data again"))
            : NodeEvent(true, "RailDown", absl::StrCat(rail, ": ", device.hca.health.Text())));
  }
  return events;
}

kube::Event PodEvent(const ContainerDevices& container,
                     const std::vector<CheckpointEntry>& checkpoint, const std::string& reason,
                     const std::string& message) {
  kube::Event event;
  event.uid = UidOf(container, checkpoint);
  if (event.uid.empty()) return event;
  event.api = "v1";
  event.kind = "Pod";
  event.space = container.pod_namespace;
  event.name = container.pod;
  event.warning = true;
  event.reason = reason;
  event.message = message;
  return event;
}

}  // namespace railhead::device_plugin
