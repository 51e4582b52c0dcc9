// SPDX-License-Identifier: Apache-2.0
//
// Page /metrics of the node agent: counters of the node's ports, and which pod holds which HCA, in
// Prometheus' text format 0.0.4. Pure.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_METRICS_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_METRICS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "device-plugin/cluster/node_facts.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/port_counters.h"

namespace railhead::device_plugin {

inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// State of the agent.
struct AgentFacts {
  bool registered = false;             // kubelet has an open stream
  uint64_t registrations = 0;          // accepted by kubelet
  int misaligned = 0;                  // containers whose HCAs are not the nearest to their GPUs
  std::optional<double> scan_seconds;  // duration of the latest scan
  uint64_t unverified_starts = 0;      // of containers whose grant is unknown
  bool config_refused = false;    // the configuration file is invalid; an earlier one is in force
  std::optional<HostFacts> host;  // nullopt before the first scan
};

// Input of the page.
struct NodeMetrics {
  std::string node;
  std::shared_ptr<const DeviceSnapshot> devices;  // not null
  // By device id and port number. A port without an entry has no counters.
  std::map<std::pair<std::string, int>, fabric::PortCounters> counters;
  std::optional<DeviceHolders> holders;  // nullopt if kubelet does not answer
  AgentFacts agent;
};

// Formats the page, with the names and labels of the project's list of metrics. Omits series
// without a value, and families without series. Two rules of labels:
// - namespace and pod are present only if exactly one pod holds the device.
// - port, for values of the whole device, is the data port.
std::string ToPrometheusText(const NodeMetrics& metrics);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_METRICS_H_
