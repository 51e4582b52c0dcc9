// SPDX-License-Identifier: Apache-2.0
//
// The node agent: keeps the node's RDMA devices offered to kubelet until it is told to stop.
//
// A thin shell round pure parts. In a loop: take the configuration and the latest scan of the node,
// let NextState say what each resource offers, let each ResourcePlugin do its next step, and sleep
// until something happens. A thread of its own scans, so that kubelet never waits for a NIC.
#ifndef RAILHEAD_DEVICE_PLUGIN_AGENT_H_
#define RAILHEAD_DEVICE_PLUGIN_AGENT_H_

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "device-plugin/cluster/health.h"
#include "device-plugin/cluster/metrics_page.h"
#include "device-plugin/cluster/node_facts.h"
#include "device-plugin/cluster/node_reporter.h"
#include "device-plugin/config/config.h"
#include "device-plugin/files/rail_map_file.h"
#include "device-plugin/files/rails_files.h"
#include "device-plugin/files/topology_files.h"
#include "device-plugin/grant/allocation_store.h"
#include "device-plugin/kubelet/registration.h"
#include "device-plugin/kubelet/resource_plugin.h"
#include "device-plugin/kubelet/wake_up.h"
#include "device-plugin/offer/container_devices.h"
#include "device-plugin/offer/device_list.h"
#include "device-plugin/offer/gpu_watch.h"
#include "device-plugin/offer/holdings.h"
#include "device-plugin/offer/next_offer.h"
#include "device-plugin/offer/scan.h"
#include "device-plugin/offer/scanner.h"
#include "device-plugin/offer/steadiness.h"
#include "fabric/inventory.h"
#include "kube/events.h"

namespace railhead::device_plugin {

struct AgentOptions {
  std::string root = "/";  // where the host's /sys and /dev are
  std::string proc_root =
      "/";  // where /proc/driver is; a container sees the host's in its own /proc
  std::string kubelet_dir = "/var/lib/kubelet/device-plugins";
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string node_name;
  std::string pod_name;  // the agent's own, and its namespace; "" where it runs in none
  std::string pod_namespace;
  // Where container runtimes look for CDI specs; "" to give plain device nodes. Must exist.
  std::string cdi_dir;
  // Whether somebody (nri/plugin.h) lets containers with HCAs pin without limit.
  bool memlock_raised = false;
  std::string config_file;  // see config.h; "" for the default configuration
  std::chrono::milliseconds rescan = std::chrono::seconds(1);   // between looks at sysfs and config
  std::chrono::milliseconds look = std::chrono::seconds(10);    // at what kubelet lists
  std::chrono::milliseconds collect = std::chrono::minutes(5);  // for unused files
  // A file this young may belong to a pod that kubelet does not list yet.
  absl::Duration keep_files = absl::Minutes(5);
  // So long after its start kubelet may not know all pods yet.
  absl::Duration kubelet_settles = absl::Minutes(2);
  // As keep_files at the end, when no new pod can come: how long kubelet may take to note an
  // allocation.
  absl::Duration settle_at_stop = absl::Seconds(2);
  // A scan that takes longer is told of.
  std::chrono::milliseconds scan_hangs = std::chrono::seconds(10);
  Scanner::Read read_scan = ReadScan;
  // What the cluster should know is told to it; nullptr where there is no API server to tell. Must
  // outlive the agent.
  NodeReporter* reporter = nullptr;
  Registration::Timing timing;
  Steadiness::Timing steadiness;
};

class Agent {
 public:
  // Checks the options; fails when the configuration, the node's name or the kubelet folder is not
  // usable.
  static absl::StatusOr<std::unique_ptr<Agent>> Make(const AgentOptions& options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Returns when `stop_fd` is readable, with the sockets and unused files removed.
  void Run(int stop_fd);

  // Thread-safe, while Run runs.
  const Health& health() const { return health_; }

  // The page for Prometheus. Thread-safe, and may be asked as often as one likes.
  std::string Metrics() const { return metrics_.Text(); }

 private:
  Agent(AgentOptions options, AgentConfig config, std::unique_ptr<WakeUp> wake_up,
        std::unique_ptr<RailsFiles> files, std::unique_ptr<AllocationStore> allocations,
        const std::string& folder);

  // Takes the configuration anew. True when it has changed.
  bool Reload();
  void LoadRailMap();
  void SaveRailMap();
  // Whether there is another one than before.
  bool TakeScan();
  // Tells once of a scan that does not end, and of its end.
  void NoteHang(TimePoint now);
  // Offers what follows from everything that is known now.
  void Offer(TimePoint now);
  void Publish();
  // Tells the cluster what is true of the node, and of what has changed since `before`.
  void TellCluster(const DeviceSnapshot& before);
  void NoteRdmaNamespaces(const std::string& mode);
  void TellEvent(kube::Event event);
  void TellConfig();
  // All that tells of who holds what. Thread-safe.
  Evidence Gather() const;
  // Takes it. False when it is not complete.
  bool LookAtKubelet();
  // In the log, and by an Event on its pod.
  void WarnOf(const ContainerDevices& container, const std::vector<CheckpointEntry>& checkpoint,
              const char* reason, const std::string& message);
  // Tells of containers whose HCAs are not the nearest to their GPUs.
  void NoteMisaligned(const std::vector<ContainerDevices>& listed,
                      const std::vector<CheckpointEntry>& checkpoint);
  // Tells of containers with several of our resources, of which kubelet passes on one without CDI.
  void NoteSeveralResources(const std::vector<ContainerDevices>& listed,
                            const std::vector<CheckpointEntry>& checkpoint);
  std::map<std::string, std::string> GpuUuids() const;
  KubeletView AskKubelet() const;
  bool HasFilesUntil(absl::Time limit) const;
  absl::Status RemoveUnused(absl::Time limit);
  void Collect();
  absl::StatusOr<DeviceHolders> AskHolders();
  void Report(TimePoint now);
  void Stop();
  ResourcePlugin& PluginOf(const std::string& resource);
  std::vector<std::string> GpusInAdmission();
  std::string TopologyFile(const fabric::NodeInventory& inventory);

  const AgentOptions options_;
  const std::unique_ptr<WakeUp> wake_up_;
  Health health_;
  DeviceBoard overview_;  // every HCA as one device, for people
  MetricsPage metrics_;
  const std::unique_ptr<RailsFiles> files_;
  const std::unique_ptr<AllocationStore> allocations_;
  TopologyFiles topologies_;
  std::string rdma_namespaces_;  // as told last
  RailMapFile rail_map_file_;
  std::string last_rail_map_error_;
  std::atomic<bool> gives_topology_;  // as config_ says, for kubelet's calls
  AgentConfig config_;
  std::string last_config_error_;
  std::string last_scan_error_;
  std::optional<Scan> scan_;  // the latest
  bool scan_hangs_ = false;   // as told last
  OfferState offer_;
  // As kubelet said last; after a change of the configuration also what may have been given away
  // since.
  Holdings holdings_;
  std::set<std::string> misaligned_;  // keys of containers
  std::set<std::string> divided_;     // the same, with several of our resources
  uint64_t registrations_ = 0;        // of all plugins, when last seen

  // What kubelet has listed since this one started; see Evidence. Of the loop alone.
  std::optional<SocketIdentity> seen_kubelet_;
  std::map<std::string, std::set<std::string>> seen_;

  // For GpusInAdmission, which kubelet's calls ask for in threads of their own.
  std::mutex admission_mutex_;
  GpuWatch gpu_watch_;
  std::set<std::string> our_resources_;  // also for metrics_
  Members members_;                      // the same
  std::vector<fabric::Gpu> gpus_;

  // While Run runs.
  std::unique_ptr<Scanner> scanner_;

  // By resource. Last, so that kubelet's calls end before what they use.
  std::map<std::string, std::unique_ptr<ResourcePlugin>> plugins_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_AGENT_H_
