// SPDX-License-Identifier: Apache-2.0
//
// Gathers what the page /metrics shows when somebody asks for it: sysfs at most once a second,
// kubelet at most every ten seconds.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_METRICS_PAGE_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_METRICS_PAGE_H_

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "device-plugin/cluster/metrics.h"
#include "device-plugin/cluster/node_facts.h"
#include "device-plugin/kubelet/registration.h"
#include "device-plugin/offer/container_devices.h"
#include "device-plugin/offer/device_list.h"

namespace railhead::device_plugin {

// Thread-safe.
class MetricsPage {
 public:
  using AskHolders = std::function<absl::StatusOr<DeviceHolders>()>;
  using Clock = std::function<TimePoint()>;

  // Reads counters below `root`, of the HCAs on `board` (whole ones, whatever their
  // slots), which must outlive it. `ask` is called
  // by whoever asks for the page, never twice at the same time. No callback may throw.
  MetricsPage(std::string root, std::string node, const DeviceBoard& board, AskHolders ask,
              Clock clock);

  // The agent's loop reports what it does.
  void ScanTook(std::chrono::duration<double> time);
  // `registered`: kubelet holds a stream of ours for every resource. `registrations`: how many it
  // has taken so far.
  void Registered(bool registered, uint64_t registrations);
  void Misaligned(int containers);
  // Whether the configuration file holds something else than what is in force.
  void ConfigRefused(bool refused);
  void Host(const HostFacts& host);

  // The page. Once in ten seconds it waits for kubelet's answer first; whoever asks meanwhile gets
  // what kubelet said before. Without an answer the page leaves out who holds what.
  std::string Text() const;

 private:
  void RefreshHolders() const;

  const std::string root_;
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

  // Held while sysfs is read: who comes meanwhile wants the same text.
  mutable std::mutex text_mutex_;
  mutable std::optional<TimePoint> read_at_;
  mutable std::string text_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_METRICS_PAGE_H_
