// SPDX-License-Identifier: Apache-2.0
//
// The page /metrics of the node agent: what its node's ports have counted, and which pod holds
// what, in Prometheus' text format 0.0.4.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_METRICS_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_METRICS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "device-plugin/cluster/node_facts.h"
#include "device-plugin/offer/container_devices.h"
#include "device-plugin/offer/device_list.h"
#include "fabric/port_counters.h"

namespace railhead::device_plugin {

inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// What the agent says of itself.
struct AgentFacts {
  bool registered = false;     // kubelet holds our stream
  uint64_t registrations = 0;  // that kubelet has taken
  int misaligned = 0;          // containers with other HCAs than those nearest to their GPUs
  std::optional<double> scan_seconds;  // how long the latest look at sysfs took
  bool config_refused = false;    // the configuration file is wrong; an earlier one is in force
  std::optional<HostFacts> host;  // nothing before the first look
};

// Everything that the page shows.
struct NodeMetrics {
  std::string node;
  std::shared_ptr<const DeviceSnapshot> devices;  // not null
  // Of a device's port, by device id and port number. A port that is not here has no counters.
  std::map<std::pair<std::string, int>, fabric::PortCounters> counters;
  std::optional<DeviceHolders> holders;  // nothing when kubelet does not answer
  AgentFacts agent;
};

// The names and labels are those of the project's list of metrics. A series whose value is not
// known is left out, and a family without any series too. Two rules for the labels:
// - namespace and pod are there only while exactly one pod holds the device.
// - port is, for what is of the whole device, the port that carries data.
std::string ToPrometheusText(const NodeMetrics& metrics);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_METRICS_H_
