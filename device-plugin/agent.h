// SPDX-License-Identifier: Apache-2.0
//
// The node agent: offers the node's RDMA devices to kubelet until it is stopped. Used by main.cc.
//
// A thin shell around pure parts. In a loop it takes the configuration and the latest scan,
// computes each resource's devices with NextState, lets each ResourcePlugin perform its next step,
// and sleeps until something happens. A separate thread scans, so that kubelet never waits for a
// NIC.
#ifndef RAILHEAD_DEVICE_PLUGIN_AGENT_H_
#define RAILHEAD_DEVICE_PLUGIN_AGENT_H_

#include <atomic>
#include <chrono>
#include <functional>
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
#include "device-plugin/cluster/job_secrets.h"
#include "device-plugin/cluster/lasting_faults.h"
#include "device-plugin/cluster/metrics_page.h"
#include "device-plugin/cluster/node_facts.h"
#include "device-plugin/cluster/node_reporter.h"
#include "device-plugin/config/config.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/time_point.h"
#include "device-plugin/files/allocation_store.h"
#include "device-plugin/files/rail_map_file.h"
#include "device-plugin/files/rails_files.h"
#include "device-plugin/files/topology_files.h"
#include "device-plugin/holdings/container_faults.h"
#include "device-plugin/holdings/gpu_watch.h"
#include "device-plugin/holdings/holdings.h"
#include "device-plugin/kubelet/pod_resources.h"
#include "device-plugin/kubelet/registration.h"
#include "device-plugin/kubelet/resource_plugin.h"
#include "device-plugin/kubelet/wake_up.h"
#include "device-plugin/offer/flap_damper.h"
#include "device-plugin/offer/next_offer.h"
#include "device-plugin/offer/renumbering.h"
#include "device-plugin/offer/scan.h"
#include "device-plugin/offer/scanner.h"
#include "fabric/inventory.h"
#include "kube/client.h"
#include "kube/events.h"
#include "kube/monotonic.h"

namespace railhead::device_plugin {

struct AgentOptions {
  std::string root = "/";  // root of the host's /sys and /dev
  std::string proc_root =
      "/";  // root of /proc/driver; a container sees the host's in its own /proc
  std::string kubelet_dir = "/var/lib/kubelet/device-plugins";
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string node_name;
  std::string pod_name;  // the agent's own pod and its namespace; "" outside a pod
  std::string pod_namespace;
  // Directory of CDI specs; "": plain device nodes. Must exist.
  std::string cdi_dir;
  // True if nri/plugin.h lets containers with HCAs lock memory without limit.
  bool memlock_raised = false;
  std::string config_file;  // see config.h; "" for the default configuration
  // interval of scans and config checks
  std::chrono::milliseconds rescan = std::chrono::seconds(1);
  std::chrono::milliseconds look = std::chrono::seconds(10);  // interval of kubelet's list
  std::chrono::milliseconds list_deadline =
      kPodResourcesDeadline;  // for each answer with that list
  // interval of removing unused files and abandoned sockets
  std::chrono::milliseconds collect = std::chrono::minutes(5);
  // Younger files may belong to a pod that kubelet does not list yet.
  absl::Duration keep_files = absl::Minutes(5);
  // For this time after its start, kubelet may not know all pods.
  absl::Duration kubelet_settles = absl::Minutes(2);
  // Like keep_files, when the agent stops and no new pod can come: time for kubelet to store an
  // allocation.
  absl::Duration settle_at_stop = absl::Seconds(2);
  // An HCA that is read for longer is offered as unhealthy, and scans go on without it.
  std::chrono::milliseconds scan_hangs = std::chrono::seconds(10);
  // Interval of the Events of a fault that lasts; the API server deletes Events after an hour.
  std::chrono::milliseconds repeat_events = std::chrono::minutes(30);
  Scanner::Read read_scan = ReadScan;
  // Reports to the cluster; null without an API server. Must outlive the agent.
  NodeReporter* reporter = nullptr;
  // File of the master key from which the secrets of jobs derive; "": containers get no secrets.
  std::string job_key_file;
  // Tells whose pod is which, for these; must outlive the agent. Null: containers get no secrets.
  kube::Api* api = nullptr;
  Registration::Timing timing;
  FlapDamper::Timing flap_damper;
};

class Agent {
 public:
  // Checks the options; fails if the configuration, node name or kubelet directory is not usable.
  static absl::StatusOr<std::unique_ptr<Agent>> Make(const AgentOptions& options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Runs until `stop_fd` is readable, then removes sockets and unused files.
  void Run(int stop_fd);

  // Thread-safe while Run runs.
  const Health& health() const { return health_; }

  // Returns the page for Prometheus. Thread-safe; may be called at any rate.
  std::string Metrics() const { return metrics_.Text(); }

 private:
  Agent(AgentOptions options, AgentConfig config, std::unique_ptr<WakeUp> wake_up,
        std::unique_ptr<RailsFiles> files, std::unique_ptr<AllocationStore> allocations,
        const std::string& folder);

  // Returns the time of day that ages of files are reckoned from: when it is set, no file becomes
  // older by that.
  absl::Time FileTime() const;
  // Reads the configuration; returns true if it changed.
  bool Reload();
  void LoadRailMap();
  void SaveRailMap();
  // Returns true if there is a new scan.
  bool TakeScan();
  // Lets scans go on without what hangs; if they cannot, reports that once, and its end.
  void NoteHang(TimePoint now);
  // Reports what the last scan did without, and what it reads again. `hanging`: see ScanWish.
  void TellHanging(const std::set<std::string>& hanging);
  // `what`: what hangs; "": reading all of the node's devices.
  void TellHang(bool hangs, const std::string& what, const std::string& message);
  // Computes and offers the current devices.
  void Offer(TimePoint now);
  // Returns true if the health of a device depends on a container: it is healthy only because the
  // container that holds it is bound to another HCA, or withheld because of a container's device
  // nodes.
  bool DependsOnHolders() const;
  std::optional<absl::Time> LastAllocation() const;
  // Returns the time until which the agent queries kubelet at each rescan. A pod that it has never
  // seen listed may have devices in init containers only, so its files stay after its end.
  absl::Time NewPodsUntil() const;
  // Adds recent allocations, which kubelet may not list yet, to holdings_.
  void HoldAllocated();
  void Publish();
  // Reports the node's state, and its changes since `before`, to the cluster.
  void TellCluster(const DeviceSnapshot& before);
  void NoteRdmaNamespaces(const std::string& mode);
  void TellEvent(kube::Event event);
  // Reports a fault now, and again while it lasts; see LastingFaults.
  void TellFault(const std::string& fault, const kube::Event& event);
  // Reports the resources that get no HCA by the last scan.
  void TellConfig();
  // Collects all evidence of held devices. Thread-safe.
  Evidence Gather() const;
  // Updates holdings_. Returns false if they are incomplete.
  bool LookAtKubelet();
  // Warns in the log, and by Events on the pods, of containers that are not in `known`, which then
  // has the keys of all of them.
  void WarnOf(const std::vector<ContainerFault>& faults, const char* reason,
              std::set<std::string>& known);
  void WarnOfRenumbered();
  // Reads what was given.
  std::vector<Grant> WithRails(std::vector<Grant> grants) const;  // thread-safe
  // For PluginService. Thread-safe.
  std::vector<Grant> StoredGrants(const std::string& resource,
                                  const std::set<std::string>& ids) const;
  std::map<std::string, std::string> GpuUuids() const;  // thread-safe
  KubeletView AskKubelet() const;
  bool HasFilesUntil(absl::Time limit) const;
  absl::Status RemoveUnused(absl::Time limit);
  // Removes the sockets of killed agent processes.
  void RemoveSockets() const;
  void Collect();
  absl::StatusOr<DeviceHolders> AskHolders();
  void Report(TimePoint now);
  void Stop();
  ResourcePlugin& PluginOf(const std::string& resource);
  std::vector<std::string> GpusInAdmission();
  std::string TopologyFile(const fabric::NodeInventory& inventory);

  const AgentOptions options_;
  const std::function<absl::Time()> steady_time_ = kube::SteadyTimeOfDay();
  const std::unique_ptr<WakeUp> wake_up_;
  Health health_;
  DeviceBoard overview_;  // every HCA as one device, for metrics
  MetricsPage metrics_;
  const std::unique_ptr<RailsFiles> files_;
  const std::unique_ptr<AllocationStore> allocations_;
  TopologyFiles topologies_;
  std::unique_ptr<JobSecrets> secrets_;  // null without a master key file or API server
  // Entries of kubelet's checkpoint whose pods may start a container, from the last query; nullopt
  // if it could not determine them.
  std::optional<std::vector<CheckpointEntry>> in_use_;
  LastingFaults faults_;
  bool rdma_exclusive_ = false;  // last reported
  RailMapFile rail_map_file_;
  std::string last_rail_map_error_;
  std::atomic<bool> gives_topology_;  // of config_, for kubelet's calls
  AgentConfig config_;
  bool config_is_new_;  // not judged by TellConfig yet
  std::string last_config_error_;
  std::string last_scan_error_;
  std::optional<Scan> scan_;       // latest
  bool scan_hangs_ = false;        // last reported
  std::set<std::string> hanging_;  // last reported; see ScanWish
  OfferState offer_;
  // By kubelet's last list, and what was allocated since; after a change of the configuration, also
  // what may have been allocated.
  Holdings holdings_;
  PodsByUid pods_by_uid_;                    // used by the loop only
  std::vector<Grant> grants_;                // of containers that may run, by kubelet's last list
  std::vector<CheckpointEntry> checkpoint_;  // at the last look
  std::set<std::string> misaligned_;         // keys of containers
  std::set<std::string> renumbered_;         // keys of containers with device nodes of other HCAs
  std::set<std::string> divided_;  // keys of containers with several of the agent's resources
  uint64_t registrations_ = 0;     // of all plugins, last seen

  // Devices that kubelet has listed since its start; see Evidence. Used by the loop only.
  std::optional<SocketIdentity> seen_kubelet_;
  std::map<std::string, std::set<std::string>> seen_;

  // For GpusInAdmission and GpuUuids, which kubelet's calls use on their own threads.
  mutable std::mutex admission_mutex_;
  GpuWatch gpu_watch_;
  std::set<std::string> our_resources_;  // also for metrics_
  Members members_;                      // also for metrics_
  std::vector<fabric::Gpu> gpus_;
  std::map<std::string, std::string> gpu_uuids_;  // see Scan

  // Set while Run runs.
  std::unique_ptr<Scanner> scanner_;

  // By resource. Last, so that kubelet's calls end before the members they use.
  std::map<std::string, std::unique_ptr<ResourcePlugin>> plugins_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_AGENT_H_
