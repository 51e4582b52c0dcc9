// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/agent.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "device-plugin/cluster/node_events.h"
#include "device-plugin/cluster/node_facts.h"
#include "device-plugin/config/config.h"
#include "device-plugin/config/config_reader.h"
#include "device-plugin/config/selector.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "device-plugin/files/allocation_store.h"
#include "device-plugin/files/atomic_file.h"
#include "device-plugin/files/rails_files.h"
#include "device-plugin/holdings/holdings.h"
#include "device-plugin/kubelet/resource_plugin.h"
#include "device-plugin/offer/next_offer.h"
#include "device-plugin/offer/rail_map.h"
#include "device-plugin/offer/scan.h"
#include "device-plugin/offer/scanner.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"
#include "fabric/root_files.h"

namespace railhead::device_plugin {
namespace {

std::string Text(const absl::Status& status) { return std::string(status.message()); }

// Returns the time until `moment`, rounded up, so that the loop does not spin.
std::chrono::milliseconds Until(TimePoint moment, TimePoint now) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::max(moment - now, Duration::zero()));
}

int64_t Seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

// Returns an error if the agent's flags do not allow the configuration.
absl::Status CheckAgainstFlags(const AgentConfig& config, const AgentOptions& options) {
  for (const ResourceConfig& resource : config.resources) {
    if (!resource.move_interfaces || !options.cdi_dir.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("moveInterfaces of ", resource.name,
                     " needs CDI: set --cdi-dir (devicePlugin.cdi in the chart)"));
  }
  return absl::OkStatus();
}

absl::StatusOr<AgentConfig> LoadConfig(const AgentOptions& options) {
  absl::StatusOr<AgentConfig> config = LoadAgentConfig(options.config_file);
  if (!config.ok()) return config;
  if (absl::Status status = CheckAgainstFlags(*config, options); !status.ok()) return status;
  return config;
}

// Returns the firmware's identifier of this machine's board, or "".
std::string BoardOf(const std::string& root) {
  const absl::StatusOr<fabric::RootFiles> files = fabric::RootFiles::Open(root);
  if (!files.ok()) return "";
  return files->ReadAttribute("/sys/class/dmi/id/product_uuid").value_or("");
}

// Returns the memory that an unprivileged container can lock, and so register. The agent runs in
// such a container, so its own limit applies.
std::optional<uint64_t> MemlockLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  return limit.rlim_cur;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Make(const AgentOptions& options) {
  if (options.node_name.empty()) {
    return absl::InvalidArgumentError(
        "the node's name is unknown; set --node-name, or NODE_NAME from spec.nodeName");
  }
  AgentConfig config;
  if (!options.config_file.empty()) {
    absl::StatusOr<AgentConfig> loaded = LoadConfig(options);
    // There is no earlier configuration, and a default could offer devices that should not be
    // offered.
    if (!loaded.ok()) return loaded.status();
    config = *std::move(loaded);
  }
  absl::StatusOr<std::unique_ptr<WakeUp>> wake_up = WakeUp::Make(options.kubelet_dir);
  if (!wake_up.ok()) return wake_up.status();
  if (!(*wake_up)->watches_folder()) {
    spdlog::warn(
        "cannot watch {} (too many inotify watches on the node?); checking it every "
        "few seconds instead",
        options.kubelet_dir);
  }
  const std::string folder = absl::StrCat(options.kubelet_dir, "/railhead");
  auto files = std::make_unique<RailsFiles>(folder);
  absl::StatusOr<std::unique_ptr<AllocationStore>> allocations =
      AllocationStore::Make({folder, options.cdi_dir, options.node_name}, files.get());
  if (!allocations.ok()) return allocations.status();
  return std::unique_ptr<Agent>(new Agent(options, std::move(config), *std::move(wake_up),
                                          std::move(files), *std::move(allocations), folder));
}

Agent::Agent(AgentOptions options, AgentConfig config, std::unique_ptr<WakeUp> wake_up,
             std::unique_ptr<RailsFiles> files, std::unique_ptr<AllocationStore> allocations,
             const std::string& folder)
    : options_(std::move(options)),
      wake_up_(std::move(wake_up)),
      metrics_(
          options_.root, options_.node_name, overview_, [this] { return AskHolders(); },
          std::chrono::steady_clock::now),
      files_(std::move(files)),
      allocations_(std::move(allocations)),
      topologies_(folder, options_.root),
      faults_(options_.repeat_events),
      rail_map_file_(folder, {options_.node_name, BoardOf(options_.root)}),
      gives_topology_(config.nccl_topology),
      config_(std::move(config)),
      config_is_new_(!options_.config_file.empty()) {
  offer_.flap_damper = FlapDamper(options_.flap_damper);
  if (options_.job_key_file.empty()) return;
  if (options_.api == nullptr) {
    spdlog::error(
        "jobs get no secrets: the agent needs the API server to identify pods; give its pod a "
        "service account token (devicePlugin.nodeFacts in the chart)");
    return;
  }
  secrets_ = std::make_unique<JobSecrets>(
      JobSecrets::Options{folder, options_.kubelet_dir, options_.pod_resources_socket,
                          options_.job_key_file},
      options_.api);
}

Agent::~Agent() = default;

void Agent::LoadRailMap() {
  absl::StatusOr<RailMap> map = rail_map_file_.Load();
  if (map.ok()) {
    offer_.rail_map = *std::move(map);
    return;
  }
  const std::string message =
      absl::StrCat("numbering rails without the stored rail map: ", Text(map.status()));
  spdlog::warn("{}", message);
  TellFault("RailMapIgnored", NodeEvent(true, "RailMapIgnored", message));
}

void Agent::SaveRailMap() {
  const absl::Status status = rail_map_file_.Save(offer_.rail_map);
  if (status.ok()) faults_.End("RailMapIgnored");  // there is a valid one again
  if (Text(status) != last_rail_map_error_) {
    last_rail_map_error_ = Text(status);
    if (!status.ok()) spdlog::error("cannot store the rail map: {}", last_rail_map_error_);
  }
}

void Agent::Run(int stop_fd) {
  LoadRailMap();
  scanner_ = std::make_unique<Scanner>(
      ScanWish{options_.root, options_.proc_root, GpuVendors(config_)}, options_.rescan,
      options_.read_scan, [wake_up = wake_up_.get()] { wake_up->Wake(); });
  TimePoint rescan_at = std::chrono::steady_clock::now();
  TimePoint look_at = rescan_at;
  TimePoint settled_at = rescan_at;  // no look before, which might miss what is being allocated
  TimePoint collect_at = rescan_at;
  bool stop = false;
  while (!stop) {
    const TimePoint now = std::chrono::steady_clock::now();
    if (now >= look_at) {
      LookAtKubelet();
      look_at = now + options_.look;
    }
    const bool scanned = TakeScan();
    if (now >= rescan_at) {
      // The time of the change: `now` may be long ago on a busy machine.
      if (Reload()) settled_at = look_at = std::chrono::steady_clock::now() + options_.look;
      NoteHang(now);
      for (kube::Event& event : faults_.TakeDue(now)) TellEvent(std::move(event));
    }
    if (scan_.has_value() && (scanned || now >= rescan_at)) Offer(now);
    if (DependsOnHolders() || kube::MonotonicNow() < NewPodsUntil()) {
      look_at = std::min(look_at, std::max<TimePoint>(now + options_.rescan, settled_at));
    }
    if (now >= rescan_at) rescan_at = now + options_.rescan;
    if (now >= collect_at) {
      Collect();
      collect_at = now + options_.collect;
    }
    TimePoint wake_at = std::min({rescan_at, look_at, collect_at});
    uint64_t registrations = 0;
    for (const auto& [resource, plugin] : plugins_) {
      wake_at = std::min(wake_at, plugin->Step(now));
      registrations += plugin->registrations();
    }
    // A kubelet that has just started may know containers that were unknown before.
    if (std::exchange(registrations_, registrations) != registrations) {
      look_at = std::min(look_at, std::max(now, settled_at));
    }
    // Before the first look nothing is known that could be offered.
    if (scan_.has_value()) Report(now);
    stop = wake_up_->Sleep(stop_fd, Until(wake_at, now));
  }
  Stop();
}

bool Agent::Reload() {
  if (options_.config_file.empty()) return false;
  absl::StatusOr<AgentConfig> config = LoadConfig(options_);
  if (config.ok()) faults_.End("ConfigurationRefused");
  if (config.ok() && *config == config_) {
    if (!last_config_error_.empty()) {
      spdlog::info("configuration file is valid again, unchanged");
      TellEvent(
          NodeEvent(false, "ConfigurationTaken", "configuration file is valid again, unchanged"));
      config_is_new_ = true;  // that event ends the warnings about it, which may still be true
    }
    last_config_error_.clear();
    metrics_.ConfigRefused(false);
    return false;
  }
  if (!config.ok()) {
    if (Text(config.status()) != last_config_error_) {
      last_config_error_ = Text(config.status());
      const std::string message =
          absl::StrCat("the new configuration is invalid, the previous one remains in effect: ",
                       last_config_error_);
      spdlog::error("{}", message);
      TellFault("ConfigurationRefused", NodeEvent(true, "ConfigurationRefused", message));
      metrics_.ConfigRefused(true);
    }
    return false;
  }
  last_config_error_.clear();
  metrics_.ConfigRefused(false);
  config_ = *std::move(config);
  gives_topology_ = config_.nccl_topology;
  scanner_->SetGpuVendors(GpuVendors(config_));
  const std::string message =
      absl::StrCat("the configuration has changed: ", config_.resources.size(), " resources");
  spdlog::info("{}", message);
  TellEvent(NodeEvent(false, "ConfigurationTaken", message));
  config_is_new_ = true;
  // Devices offered until now may be in use, or being allocated, until kubelet's list shows
  // otherwise.
  for (const auto& [resource, plugin] : plugins_) {
    for (const Device& device : plugin->devices()->devices) {
      holdings_.by_resource[resource].insert(device.id);
    }
  }
  return true;
}

void Agent::TellConfig() {
  const std::vector<std::vector<size_t>> shares = ShareOut(config_, offer_.found.hcas);
  for (size_t i = 0; i < config_.resources.size(); ++i) {
    if (!shares[i].empty()) continue;
    const std::string miss = ClosestMiss(config_.resources[i].selectors, offer_.found.hcas);
    const std::string message = absl::StrCat(config_.resources[i].name, " gets no HCA of this node",
                                             miss.empty() ? "" : ": ", miss);
    spdlog::warn("{}", message);
    TellEvent(NodeEvent(true, "ResourceWithoutHcas", message));
  }
}

bool Agent::TakeScan() {
  std::optional<Scanner::Result> result = scanner_->Take();
  if (!result.has_value()) return false;
  metrics_.ScanTook(result->took);
  if (!result->scan.ok()) {
    // Known devices remain offered: a failed scan does not mean that a device is broken.
    if (Text(result->scan.status()) != last_scan_error_) {
      last_scan_error_ = Text(result->scan.status());
      spdlog::error("cannot read the node's devices: {}", last_scan_error_);
    }
    return false;
  }
  last_scan_error_.clear();
  scan_ = *std::move(result->scan);
  {
    const std::lock_guard<std::mutex> lock(admission_mutex_);
    gpu_uuids_ = scan_->gpu_uuids;
  }
  TellHanging(result->hanging);
  return true;
}

void Agent::NoteHang(TimePoint now) {
  scanner_->LeaveHanging(now, options_.scan_hangs);
  const std::optional<Scanner::Busy> busy = scanner_->busy();
  const bool hangs = busy.has_value() && now - busy->since > options_.scan_hangs;
  if (std::exchange(scan_hangs_, hangs) == hangs) return;
  if (!hangs) return TellHang(false, "", "reading the node's devices works again");
  TellHang(
      true, "",
      absl::StrCat("reading the node's devices has not ended for ", Seconds(now - busy->since),
                   " s: firmware or a driver may hang; earlier devices stay offered, and no "
                   "failure of any HCA is detected meanwhile; check dmesg, and reset the node"));
}

void Agent::TellHanging(const std::set<std::string>& hanging) {
  const auto named = [this](const std::string& what) {
    const std::vector<fabric::Hca>& hcas = scan_->inventory.hcas;
    const auto hca = std::find_if(hcas.begin(), hcas.end(),
                                  [&what](const fabric::Hca& one) { return one.name == what; });
    if (hca == hcas.end() || hca->pci_address.empty()) return what;
    return absl::StrCat(what, " (", hca->pci_address, ")");
  };
  const std::set<std::string> before = std::exchange(hanging_, hanging);
  for (const std::string& what : hanging) {
    if (before.contains(what)) continue;
    TellHang(true, what,
             absl::StrCat("reading ", named(what), " has not ended for ",
                          Seconds(options_.scan_hangs), " s: ",
                          what == kGpuDriver
                              ? "the GPU driver may hang; HCAs are served, and the GPUs "
                                "stay as they were read last; check dmesg, and reset the GPU "
                                "or the node"
                              : "its firmware or driver may hang; it is unhealthy until "
                                "that ends, and other HCAs are served; check dmesg, and "
                                "reset the NIC or the node"));
  }
  for (const std::string& what : before) {
    if (!hanging.contains(what)) {
      TellHang(false, what, absl::StrCat("reading ", named(what), " works again"));
    }
  }
}

void Agent::TellHang(bool hangs, const std::string& what, const std::string& message) {
  spdlog::log(hangs ? spdlog::level::err : spdlog::level::info, "{}", message);
  const std::string fault = absl::StrCat("DeviceScanHangs ", what);
  if (hangs) return TellFault(fault, NodeEvent(true, "DeviceScanHangs", message));
  faults_.End(fault);
  TellEvent(NodeEvent(false, "DeviceScanWorks", message));
}

bool Agent::DependsOnHolders() const {
  if (!offer_.renumbered.empty()) return true;
  return std::any_of(plugins_.begin(), plugins_.end(), [](const auto& plugin) {
    const std::shared_ptr<const DeviceSnapshot> known = plugin.second->devices();
    return std::any_of(known->devices.begin(), known->devices.end(),
                       [&known](const Device& device) {
                         return !device.hca.health.usable() && known->Healthy(device);
                       });
  });
}

void Agent::HoldAllocated() {
  const absl::Time since = kube::MonotonicNow() - 2 * absl::FromChrono(options_.look);
  for (const auto& [resource, plugin] : plugins_) {
    for (const std::string& id : plugin->AllocatedSince(since)) {
      holdings_.by_resource[resource].insert(id);
    }
  }
}

void Agent::Offer(TimePoint now) {
  HoldAllocated();
  offer_ = NextState(std::move(offer_), {config_, *scan_, holdings_, grants_, now});
  SaveRailMap();
  if (config_is_new_ && !offer_.found.hcas.empty()) {
    config_is_new_ = false;
    TellConfig();
  }
  const std::shared_ptr<const DeviceSnapshot> before = overview_.Current();
  Publish();
  TellCluster(*before);
  WarnOfRenumbered();
}

void Agent::TellCluster(const DeviceSnapshot& before) {
  const fabric::NodeInventory& inventory = offer_.inventory;
  HostFacts host;
  if (!options_.memlock_raised) host.memlock_bytes = MemlockLimit();
  host.gpu_direct = scan_->gpu_direct;
  host.rails_in_use = RailsInUse(holdings_, inventory, offer_.devices);
  host.rdma_namespaces = scan_->rdma_namespaces;
  NoteRdmaNamespaces(host.rdma_namespaces);
  metrics_.Host(host);
  for (kube::Event& event : RailEvents(before, *overview_.Current())) TellEvent(std::move(event));
  if (options_.reporter != nullptr) options_.reporter->Publish(DescribeNode(inventory, host));
}

void Agent::NoteRdmaNamespaces(const std::string& mode) {
  const bool all_move = std::all_of(
      config_.resources.begin(), config_.resources.end(),
      [](const ResourceConfig& one) { return one.network == fabric::PodNetwork::kMoved; });
  const bool exclusive = mode == "exclusive" && !all_move;
  if (std::exchange(rdma_exclusive_, exclusive) == exclusive) return;
  if (!exclusive) return faults_.End("RdmaNamespacesExclusive");
  const std::string message =
      "the kernel's RDMA namespaces are exclusive: pods without hostNetwork cannot open their HCAs "
      "(EPERM), unless a CNI (rdma-cni) moves them into the pod: then set network: moved for their "
      "resource; for shared namespaces run: rdma system set netns shared (before any pod runs), "
      "and set the ib_core option netns_mode=1";
  spdlog::warn("{}", message);
  TellFault("RdmaNamespacesExclusive", NodeEvent(true, "RdmaNamespacesExclusive", message));
}

void Agent::TellEvent(kube::Event event) {
  if (options_.reporter != nullptr) options_.reporter->Tell(std::move(event));
}

void Agent::TellFault(const std::string& fault, const kube::Event& event) {
  TellEvent(event);
  faults_.Begin(fault, event, std::chrono::steady_clock::now());
}

void Agent::Publish() {
  std::map<std::string, std::vector<Device>> assigned = offer_.devices;
  std::vector<Device> whole;
  for (const fabric::Hca& hca : offer_.inventory.hcas) {
    if (hca.offered) whole.push_back({DeviceId(hca), hca});
  }
  overview_.Publish(offer_.inventory, std::move(whole));
  {
    const std::lock_guard<std::mutex> lock(admission_mutex_);
    gpus_ = offer_.inventory.gpus;
    members_.clear();
    for (const auto& [resource, devices] : assigned) {
      our_resources_.insert(resource);
      if (devices.empty()) continue;
      for (const fabric::Hca& hca : devices.back().all) members_[resource].push_back(DeviceId(hca));
    }
  }
  // A resource that is no longer configured and not in use is offered without devices.
  for (const auto& [resource, plugin] : plugins_) assigned[resource];
  for (auto& [resource, devices] : assigned) {
    PluginOf(resource).Publish(offer_.inventory, std::move(devices),
                               allocations_->BoundElsewhere(resource));
  }
}

ResourcePlugin& Agent::PluginOf(const std::string& resource) {
  std::unique_ptr<ResourcePlugin>& plugin = plugins_[resource];
  if (plugin == nullptr) {
    const ServiceOptions service = {
        options_.node_name,
        files_.get(),
        [this] { return GpusInAdmission(); },
        resource,
        allocations_->enabled() ? allocations_.get() : nullptr,
        [this](const std::string& name, const std::set<std::string>& ids) {
          return StoredGrants(name, ids);
        },
        [this] { metrics_.UnverifiedStart(); },
        [this] { return AskKubelet(); },
        [this](const fabric::NodeInventory& inventory) { return TopologyFile(inventory); },
        [this] { return secrets_ == nullptr ? "" : secrets_->NewFolder(); }};
    plugin = std::make_unique<ResourcePlugin>(resource, options_.kubelet_dir, service,
                                              options_.timing, [this] { wake_up_->Wake(); });
  }
  return *plugin;
}

void Agent::Report(TimePoint now) {
  Health::Beat beat;
  beat.kubelet = IdentifySocket(absl::StrCat(options_.kubelet_dir, "/kubelet.sock")).has_value();
  beat.serving = true;
  for (const auto& [resource, plugin] : plugins_) {
    if (!plugin->has_devices()) continue;
    beat.has_devices = true;
    beat.serving = beat.serving && plugin->serving();
  }
  health_.Report(beat, now);
  metrics_.Registered(beat.has_devices && beat.serving, registrations_);
}

std::optional<absl::Time> Agent::LastAllocation() const {
  std::optional<absl::Time> last;
  for (const auto& [resource, plugin] : plugins_) last = std::max(last, plugin->last_allocation());
  return last;
}

absl::Time Agent::NewPodsUntil() const {
  const std::optional<absl::Time> last = LastAllocation();
  return last.has_value() ? *last + absl::FromChrono(options_.look) : absl::InfinitePast();
}

void Agent::Stop() {
  for (const auto& [resource, plugin] : plugins_) plugin->Stop();
  const std::optional<absl::Time> last = LastAllocation();
  RemoveSockets();
  scanner_.reset();
  if (last.has_value()) {
    const absl::Duration rest = *last + options_.settle_at_stop - kube::MonotonicNow();
    const absl::Duration pause = std::clamp(rest, absl::ZeroDuration(), options_.settle_at_stop);
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(pause));
  }
  holdings_ = {};
  if (HasFilesUntil(absl::InfiniteFuture())) {
    const absl::Status status =
        LookAtKubelet() ? RemoveUnused(absl::InfiniteFuture())
                        : absl::UnavailableError("kubelet does not list the devices of pods");
    if (!status.ok()) spdlog::warn("rails files are kept: {}", Text(status));
  }
  spdlog::info("stopped");
}

}  // namespace railhead::device_plugin
