// SPDX-License-Identifier: Apache-2.0
//
// Collects the data of /metrics on request: sysfs at most once per second, kubelet at most once per
// ten seconds. An HCA that hangs loses its counters, and no others.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_METRICS_PAGE_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_METRICS_PAGE_H_

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "device-plugin/cluster/counter_reader.h"
#include "device-plugin/cluster/metrics.h"
#include "device-plugin/cluster/node_facts.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/time_point.h"

namespace railhead::device_plugin {

// Thread-safe. Used by Agent.
class MetricsPage {
 public:
  using AskHolders = std::function<absl::StatusOr<DeviceHolders>()>;
  using Clock = std::function<TimePoint()>;

  // Firmware takes milliseconds for a port's counters. Prometheus waits ten seconds by default.
  static constexpr std::chrono::milliseconds kPatience{1000};

  // Reads counters below `root` of the HCAs on `board` (whole HCAs, not slots), which must outlive
  // the page. The callback for holders runs on the thread of a request, never concurrently. Neither
  // callback may throw. The last argument is the timeout of CounterReader.
  MetricsPage(std::string root, std::string node, const DeviceBoard& board, AskHolders ask,
              Clock clock, std::chrono::milliseconds patience = kPatience);

  // Reports of the agent's loop.
  void ScanTook(std::chrono::duration<double> time);
  // `registered`: kubelet has a stream for every resource. `registrations`: total number.
  void Registered(bool registered, uint64_t registrations);
  void Misaligned(int containers);
  // A container starts with devices that could not be compared. Called on any thread.
  void UnverifiedStart();
  // True if the configuration file differs from the one in force, because it is invalid.
  void ConfigRefused(bool refused);
  void Host(const HostFacts& host);

  // Returns the page. Every ten seconds one request waits for kubelet; concurrent requests get its
  // previous answer. Without an answer the page omits the holders of devices.
  std::string Text() const;

 private:
  void RefreshHolders() const;

  const std::string node_;
  const DeviceBoard& board_;
  const AskHolders ask_;
  const Clock clock_;

  mutable std::mutex facts_mutex_;
  AgentFacts facts_;

  mutable std::mutex holders_mutex_;
  mutable std::optional<TimePoint> asked_at_;
  mutable bool asking_ = false;
  mutable std::optional<DeviceHolders> holders_;

  // Held while sysfs is read; concurrent requests wait for the same text.
  mutable std::mutex text_mutex_;
  mutable CounterReader counters_;
  mutable std::optional<TimePoint> read_at_;
  mutable std::string text_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_METRICS_PAGE_H_
