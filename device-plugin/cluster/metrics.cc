// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "device-plugin/cluster/node_facts.h"
#include "fabric/gpu_direct.h"
#include "fabric/hca_health.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

using fabric::HcaPort;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using MetricLabels = std::vector<ClientMetric::Label>;

// Prometheus rejects a whole page if one label is not UTF-8, and a device name can contain any
// bytes. The serializer escapes quotes, backslashes and line ends.
std::string LabelValue(std::string text) {
  for (char& c : text) {
    if (!absl::ascii_isascii(static_cast<unsigned char>(c))) c = '?';
  }
  return text;
}

class Page {
 public:
  explicit Page(const NodeMetrics& metrics) : metrics_(metrics) {}

  std::string Text() {
    AddPorts();
    AddDevices();
    AddAgent();
    AddHost();
    return prometheus::TextSerializer().Serialize(families_);
  }

 private:
  void AddPorts() {
    Family("railhead_port_state", MetricType::Gauge,
           "1 while the port's link is ACTIVE, else 0: check the cable, the switch port and the "
           "interface.");
    EachPort([this](const Device& device, const HcaPort& port) {
      Add(PortLabels(device, &port), port.state == "ACTIVE" ? 1 : 0);
    });
    Family("railhead_port_rate_bytes_per_second", MetricType::Gauge,
           "Link rate in one direction. If it is below that of other ports, the link has trained "
           "at a low rate; reseat the cable.");
    EachPort([this](const Device& device, const HcaPort& port) {
      if (port.rate_gbps > 0) Add(PortLabels(device, &port), port.rate_gbps * 1e9 / 8);
    });
    for (const fabric::PortCounterName& family : fabric::PortCounterNames()) {
      Family(absl::StrCat("railhead_port_", family.name, "_total"), MetricType::Counter,
             family.help);
      EachPort([this, &family](const Device& device, const HcaPort& port) {
        const auto counters = metrics_.counters.find({device.id, port.port});
        if (counters == metrics_.counters.end()) return;
        const std::optional<uint64_t> value = counters->second.*family.counter;
        if (value.has_value()) Add(PortLabels(device, &port), static_cast<double>(*value));
      });
    }
  }

  void AddDevices() {
    Family("railhead_device_healthy", MetricType::Gauge,
           "1 while kubelet can allocate this device to a pod, else 0; the agent's log and "
           "`railhead-device-plugin discover` show the cause.");
    for (const Device& device : metrics_.devices->devices) {
      Add(DeviceLabels(device), device.hca.health.usable() ? 1 : 0);
    }
    Family(
        "railhead_device_trouble", MetricType::Gauge,
        "1 for each reason why this device is not healthy: missing, hang, identity, rules (role, "
        "ports, device nodes, addresses), shared-address, symbol-errors, renumbering, "
        "flap-damping or assignment. The node's annotation railhead.io/node-facts has the texts.");
    for (const Device& device : metrics_.devices->devices) {
      for (const auto& [stage, text] : device.hca.health.troubles()) {
        MetricLabels labels = DeviceLabels(device);
        labels.push_back({"stage", std::string(fabric::ToString(stage))});
        Add(std::move(labels), 1);
      }
    }
    Family("railhead_device_renumbered", MetricType::Gauge,
           "1 while a container that holds this device, or can open it, has device nodes "
           "(/dev/infiniband/uverbsN) that are now those of other HCAs, as after a reload of the "
           "driver; else 0. Delete the pod that the node's Event RailDown names, so that it is "
           "given devices again; until then the device is not offered.");
    for (const Device& device : metrics_.devices->devices) {
      Add(DeviceLabels(device), device.hca.health.Has(fabric::Stage::kRenumbering) ? 1 : 0);
    }
    Family("railhead_device_allocated", MetricType::Gauge,
           "1 while a pod holds this device, else 0. Absent while kubelet's PodResources API does "
           "not respond.");
    if (!metrics_.holders.has_value()) return;
    for (const Device& device : metrics_.devices->devices) {
      Add(DeviceLabels(device), metrics_.holders->contains(device.id) ? 1 : 0);
    }
  }

  void AddAgent() {
    const MetricLabels labels = {{"node", LabelValue(metrics_.node)}};
    const AgentFacts& agent = metrics_.agent;
    Family("railhead_agent_registered", MetricType::Gauge,
           "1 while kubelet has this agent's list of devices. 0 with devices on the node: pods "
           "cannot get one.");
    Add(labels, agent.registered ? 1 : 0);
    Family("railhead_agent_registrations_total", MetricType::Counter,
           "Registrations accepted by kubelet: one per start of kubelet. Steady growth means that "
           "registrations are lost.");
    Add(labels, static_cast<double>(agent.registrations));
    Family("railhead_agent_misaligned_containers", MetricType::Gauge,
           "Containers with GPUs whose HCAs are not the nearest ones: kubelet allocated the HCAs "
           "before the GPUs, or nearer ones were in use. The agent's log lists them.");
    Add(labels, agent.misaligned);
    Family("railhead_agent_unverified_starts_total", MetricType::Counter,
           "Containers that started although the agent could not compare their device nodes with "
           "those of their HCAs, as kubelet's checkpoint or their rails.json was missing. The "
           "agent's log lists their devices.");
    Add(labels, static_cast<double>(agent.unverified_starts));
    Family("railhead_agent_config_refused", MetricType::Gauge,
           "1 while the configuration file is invalid and an earlier one is in effect; the agent's "
           "log and an Event of the node show line, field, cause and fix.");
    Add(labels, agent.config_refused ? 1 : 0);
    Family("railhead_agent_scan_seconds", MetricType::Gauge,
           "Duration of the latest scan of the node's devices. Several seconds mean that a driver "
           "or its firmware responds slowly.");
    if (agent.scan_seconds.has_value()) Add(labels, *agent.scan_seconds);
    Family("railhead_agent_unreadable_counters", MetricType::Gauge,
           "Counters in sysfs that could not be read, or were not a number, at this scrape. Their "
           "series are missing.");
    int unreadable = 0;
    for (const auto& [port, counters] : metrics_.counters) unreadable += counters.unreadable;
    Add(labels, unreadable);
  }

  void AddHost() {
    if (!metrics_.agent.host.has_value()) return;
    const HostFacts& host = *metrics_.agent.host;
    const MetricLabels labels = {{"node", LabelValue(metrics_.node)}};
    Family("railhead_node_memlock_bytes", MetricType::Gauge,
           "Memory that a container without CAP_IPC_LOCK can register with an HCA (RLIMIT_MEMLOCK "
           "of containers on this node); +Inf without a limit. Below some hundred MiB, NCCL and "
           "UCX fail or fall back to TCP.");
    Add(labels, host.memlock_bytes.has_value() ? static_cast<double>(*host.memlock_bytes)
                                               : std::numeric_limits<double>::infinity());
    Family("railhead_node_gpudirect", MetricType::Gauge,
           "1 for the mechanism by which HCAs of this node access its GPUs' memory: dmabuf, "
           "peermem or none. The node's annotation railhead.io/node-facts shows the cause.");
    if (!host.gpu_direct.has_value()) return;
    MetricLabels way = labels;
    way.push_back({"way", std::string(ToString(WayOf(*host.gpu_direct)))});
    Add(way, 1);
  }

  template <typename Visit>
  void EachPort(const Visit& visit) const {
    for (const Device& device : metrics_.devices->devices) {
      for (const HcaPort& port : device.hca.ports) visit(device, port);
    }
  }

  MetricLabels DeviceLabels(const Device& device) const {
    return PortLabels(device, fabric::DataPort(device.hca));
  }

  // `port` is null for a device without one.
  MetricLabels PortLabels(const Device& device, const HcaPort* port) const {
    MetricLabels labels = {{"node", LabelValue(metrics_.node)},
                           {"rail", absl::StrCat(device.hca.rail)},
                           {"device", LabelValue(device.hca.name)}};
    if (port != nullptr) labels.push_back({"port", absl::StrCat(port->port)});
    if (!metrics_.holders.has_value()) return labels;
    const auto holders = metrics_.holders->find(device.id);
    if (holders == metrics_.holders->end() || holders->second.size() != 1) return labels;
    const PodName& pod = *holders->second.begin();
    labels.push_back({"namespace", LabelValue(pod.first)});
    labels.push_back({"pod", LabelValue(pod.second)});
    return labels;
  }

  void Family(std::string name, MetricType type, const char* help) {
    if (!families_.empty() && families_.back().metric.empty()) families_.pop_back();
    families_.push_back({std::move(name), help, type, {}});
  }

  void Add(MetricLabels labels, double value) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = std::move(labels);
    if (families_.back().type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
  }

  const NodeMetrics& metrics_;
  std::vector<MetricFamily> families_;
};

}  // namespace

std::string ToPrometheusText(const NodeMetrics& metrics) { return Page(metrics).Text(); }

}  // namespace railhead::device_plugin
