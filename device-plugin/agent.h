// SPDX-License-Identifier: Apache-2.0
//
// The node agent: keeps the node's RDMA devices offered to kubelet until it is told to stop.
//
// A thin shell round pure parts: it reads sysfs into the board, looks at sockets and streams, does
// what Registration decides, and sleeps until something happens.
#ifndef RAILHEAD_DEVICE_PLUGIN_AGENT_H_
#define RAILHEAD_DEVICE_PLUGIN_AGENT_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "device-plugin/device_list.h"
#include "device-plugin/health.h"
#include "device-plugin/metrics_page.h"
#include "device-plugin/plugin_server.h"
#include "device-plugin/plugin_service.h"
#include "device-plugin/rails_files.h"
#include "device-plugin/register_call.h"
#include "device-plugin/registration.h"
#include "device-plugin/wake_up.h"

namespace railhead::device_plugin {

struct AgentOptions {
  std::string root = "/";  // where the host's /sys and /dev are
  std::string kubelet_dir = "/var/lib/kubelet/device-plugins";
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string node_name;
  std::string resource = "rdma/hca";
  std::chrono::milliseconds rescan = std::chrono::seconds(5);
  std::chrono::milliseconds collect = std::chrono::minutes(5);  // between looks for unused files
  // A file this young may belong to a pod that kubelet does not list yet.
  absl::Duration keep_files = absl::Minutes(5);
  // The same at the end, when no new pod can come: how long kubelet may take to note an allocation.
  absl::Duration settle_at_stop = absl::Seconds(2);
  Registration::Timing timing;
};

class Agent {
 public:
  // Checks the options; fails when the resource's name, the node's name or the kubelet folder is
  // not usable.
  static absl::StatusOr<std::unique_ptr<Agent>> Make(const AgentOptions& options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Returns when `stop_fd` is readable, with the socket and unused files removed.
  void Run(int stop_fd);

  // Thread-safe, while Run runs.
  const Health& health() const { return health_; }

  // The page for Prometheus. Thread-safe, and may be asked as often as one likes.
  std::string Metrics() const { return metrics_.Text(); }

 private:
  Agent(AgentOptions options, std::unique_ptr<WakeUp> wake_up);

  void Rescan();
  void Collect();
  Observation Observe() const;
  void TakeRegisterResult(TimePoint now);
  void Serve(TimePoint now);
  void StartRegistration();
  void TellChanges(const Observation& seen);
  void Stop();

  const AgentOptions options_;
  const std::string kubelet_socket_;
  const std::string socket_name_;
  const std::unique_ptr<WakeUp> wake_up_;
  Health health_;
  DeviceBoard board_;
  MetricsPage metrics_;
  RailsFiles files_;
  PluginService service_;
  Registration registration_;
  std::unique_ptr<PluginServer> server_;
  std::unique_ptr<RegisterCall> register_call_;
  std::string last_scan_error_;
  bool told_serving_ = false;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_AGENT_H_
