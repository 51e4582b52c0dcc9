// SPDX-License-Identifier: Apache-2.0
//
// The agent's view of kubelet: which container holds which HCAs, which one is being admitted, and
// which files no container uses.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "device-plugin/agent.h"
#include "device-plugin/cluster/node_events.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "device-plugin/files/allocation_store.h"
#include "device-plugin/files/atomic_file.h"
#include "device-plugin/files/rails_files.h"
#include "device-plugin/holdings/container_faults.h"
#include "device-plugin/holdings/holdings.h"
#include "device-plugin/kubelet/plugin_server.h"
#include "device-plugin/kubelet/pod_resources.h"
#include "device-plugin/kubelet/resource_plugin.h"
#include "device-plugin/offer/renumbering.h"
#include "fabric/inventory.h"
#include "fabric/pod_rails.h"
#include "kube/monotonic.h"

namespace railhead::device_plugin {

absl::Time Agent::FileTime() const { return std::min(absl::Now(), steady_time_()); }

Evidence Agent::Gather() const {
  Evidence evidence;
  absl::StatusOr<PodList> listed = ListPods(options_.pod_resources_socket, options_.list_deadline);
  if (listed.ok()) evidence.listed = *std::move(listed);
  evidence.own_pod = {options_.pod_namespace, options_.pod_name};
  evidence.checkpoint = ReadKubeletCheckpoint(options_.kubelet_dir);
  evidence.records = allocations_->records();
  // Kubelet creates its socket when it starts.
  evidence.young = !NotYoungerThan(absl::StrCat(options_.kubelet_dir, "/kubelet.sock"),
                                   FileTime() - options_.kubelet_settles);
  return evidence;
}

bool Agent::LookAtKubelet() {
  // Each kubelet creates its socket again.
  const std::string& socket = options_.pod_resources_socket;
  const std::optional<SocketIdentity> kubelet = IdentifySocket(socket);
  if (kubelet != std::exchange(seen_kubelet_, kubelet)) seen_.clear();
  const absl::Time asked_at = kube::MonotonicNow();
  Evidence evidence = Gather();
  evidence.seen = seen_;
  holdings_ = Weigh(holdings_, evidence);
  in_use_.reset();
  if (!evidence.listed.has_value()) return false;
  // Unless it has restarted since.
  if (IdentifySocket(socket) == kubelet) {
    for (const auto& [resource, ids] : HeldByResource(evidence.listed->containers)) {
      seen_[resource].insert(ids.begin(), ids.end());
    }
  }
  const std::vector<ContainerDevices>& listed = evidence.listed->containers;
  checkpoint_ = evidence.checkpoint.value_or(std::vector<CheckpointEntry>());
  std::vector<Grant> grants = GrantsIn(checkpoint_);
  for (Grant& grant : allocations_->Grants()) grants.push_back(std::move(grant));
  grants_ = WithRails(LiveGrants(std::move(grants), listed, holdings_.complete));
  if (holdings_.complete) allocations_->Look(listed, asked_at);
  if (holdings_.complete && evidence.checkpoint.has_value()) {
    LearnPods(checkpoint_, *evidence.listed, pods_by_uid_);
    in_use_ = EntriesInUse(checkpoint_, *evidence.listed, pods_by_uid_);
  }
  if (secrets_ != nullptr && in_use_.has_value()) {
    const absl::Status removed =
        secrets_->Collect(SecretFoldersOf(*in_use_), FileTime() - options_.keep_files);
    if (!removed.ok()) {
      spdlog::warn("unused secrets are kept for now: {}", std::string(removed.message()));
    }
  }
  ResourceSnapshots offered;
  for (const auto& [resource, plugin] : plugins_) offered[resource] = plugin->devices();
  WarnOf(
      FindNotNearest(AsBound(evidence.records, listed), offered, offer_.inventory.gpus, GpuUuids()),
      "HcasNotNearest", misaligned_);
  metrics_.Misaligned(static_cast<int>(misaligned_.size()));
  if (!allocations_->enabled()) {
    WarnOf(FindDivided(listed, offered), "SeveralResources", divided_);
  }
  const std::lock_guard<std::mutex> lock(admission_mutex_);
  gpu_watch_.Look(listed, checkpoint_);
  return holdings_.complete;
}

std::vector<Grant> Agent::WithRails(std::vector<Grant> grants) const {
  for (Grant& grant : grants) {
    for (const std::string& file : grant.rails_files) {
      const std::optional<fabric::PodRails> rails = files_->Read(file);
      if (!rails.has_value()) continue;
      grant.rails.insert(grant.rails.end(), rails->rails.begin(), rails->rails.end());
    }
  }
  return grants;
}

std::vector<Grant> Agent::StoredGrants(const std::string& resource,
                                       const std::set<std::string>& ids) const {
  const std::optional<std::vector<CheckpointEntry>> checkpoint =
      ReadKubeletCheckpoint(options_.kubelet_dir);
  if (!checkpoint.has_value()) return {};
  return WithRails(GrantsOf(GrantsIn(*checkpoint), resource, ids));
}

void Agent::WarnOfRenumbered() {
  std::map<std::string, ContainerFault> by_container;
  for (const Renumbering& one : offer_.renumbered) {
    // Reasons of devices name those that kubelet does not list.
    if (one.holder.pod.empty()) continue;
    by_container.insert({KeyOf(one.holder), {one.holder, one.message}});
  }
  std::vector<ContainerFault> faults;
  faults.reserve(by_container.size());
  for (auto& [key, fault] : by_container) faults.push_back(std::move(fault));
  WarnOf(faults, "DeviceRenumbered", renumbered_);
}

void Agent::WarnOf(const std::vector<ContainerFault>& faults, const char* reason,
                   std::set<std::string>& known) {
  std::set<std::string> now;
  const auto name = [reason](const std::string& key) { return absl::StrCat(reason, " ", key); };
  for (const ContainerFault& fault : faults) {
    now.insert(KeyOf(fault.container));
    if (known.contains(KeyOf(fault.container))) continue;
    spdlog::warn("{}/{}: {}", fault.container.pod_namespace, fault.container.pod, fault.message);
    const kube::Event event = PodEvent(fault.container, checkpoint_, reason, fault.message);
    if (!event.reason.empty()) TellFault(name(KeyOf(fault.container)), event);
  }
  for (const std::string& key : known) {
    if (!now.contains(key)) faults_.End(name(key));
  }
  known = std::move(now);
}

std::map<std::string, std::string> Agent::GpuUuids() const {
  const std::lock_guard<std::mutex> lock(admission_mutex_);
  return gpu_uuids_;
}

std::vector<std::string> Agent::GpusInAdmission() {
  const absl::StatusOr<std::vector<ContainerDevices>> listed =
      ListContainerDevices(options_.pod_resources_socket, options_.list_deadline);
  if (!listed.ok()) {
    spdlog::warn("HCAs are chosen without GPU affinity: {}",
                 std::string(listed.status().message()));
    return {};
  }
  const std::lock_guard<std::mutex> lock(admission_mutex_);
  return gpu_watch_.InAdmission(
      *listed, ReadKubeletCheckpoint(options_.kubelet_dir).value_or(std::vector<CheckpointEntry>()),
      our_resources_, gpus_, gpu_uuids_);
}

std::string Agent::TopologyFile(const fabric::NodeInventory& inventory) {
  if (!gives_topology_) return "";
  absl::StatusOr<std::string> path = topologies_.Store(inventory);
  if (path.ok()) return *std::move(path);
  // A container works without it.
  spdlog::warn("a container gets no topology file for NCCL: {}",
               std::string(path.status().message()));
  return "";
}

KubeletView Agent::AskKubelet() const {
  KubeletView view;
  view.asked_at = kube::MonotonicNow();
  absl::StatusOr<std::vector<ContainerDevices>> listed =
      ListContainerDevices(options_.pod_resources_socket, options_.list_deadline);
  if (listed.ok()) {
    view.listed = *std::move(listed);
    view.gpu_uuids = GpuUuids();
  } else {
    spdlog::warn("a container starts with the HCAs that kubelet chose: {}",
                 std::string(listed.status().message()));
  }
  return view;
}

bool Agent::HasFilesUntil(absl::Time limit) const {
  return files_->HasFilesUntil(limit) || allocations_->HasFilesUntil(limit) ||
         topologies_.HasFilesUntil(limit) ||
         (secrets_ != nullptr && secrets_->HasFoldersUntil(limit));
}

absl::Status Agent::RemoveUnused(absl::Time limit) {
  if (!in_use_.has_value()) {
    return absl::UnavailableError(
        absl::StrCat("kubelet's checkpoint in ", options_.kubelet_dir,
                     " cannot be read, and may have pods that kubelet does not list"));
  }
  Holdings held = holdings_;
  for (const CheckpointEntry& entry : *in_use_) {
    held.by_resource[entry.resource].insert(entry.ids.begin(), entry.ids.end());
  }
  absl::Status status = allocations_->Collect(held.by_resource, limit);
  if (secrets_ != nullptr) status.Update(secrets_->Collect(SecretFoldersOf(*in_use_), limit));
  status.Update(files_->Collect(HeldHcas(held), limit));
  // Every container that holds an HCA has rails.json as well.
  status.Update(topologies_.Collect(files_->HasFilesUntil(absl::InfiniteFuture()), limit));
  return status;
}

void Agent::RemoveSockets() const {
  for (const std::string& file : RemoveAbandonedSockets(options_.kubelet_dir)) {
    spdlog::info("removed {}, the socket of an agent process that was killed", file);
  }
}

void Agent::Collect() {
  RemoveSockets();
  const absl::Time limit = FileTime() - options_.keep_files;
  if (!HasFilesUntil(limit)) return;
  if (!LookAtKubelet()) {
    spdlog::warn(
        "unused rails files are kept for now: the kubelet at {} does not list the devices of all "
        "pods; if it is not starting, mount the host's pod-resources directory there",
        options_.pod_resources_socket);
    return;
  }
  const absl::Status status = RemoveUnused(limit);
  if (!status.ok()) {
    spdlog::warn("unused rails files stay for now: {}", std::string(status.message()));
  }
}

absl::StatusOr<DeviceHolders> Agent::AskHolders() {
  const Evidence evidence = Gather();
  if (!Weigh({}, evidence).complete) {
    return absl::UnavailableError("kubelet does not list all pods yet");
  }
  DeviceHolders holders;
  {
    const std::lock_guard<std::mutex> lock(admission_mutex_);
    holders =
        HoldersByHca(WithMembers(AsBound(evidence.records, evidence.listed->containers), members_),
                     our_resources_);
  }
  // By the ids of HCAs, not by kubelet's device ids.
  const std::shared_ptr<const DeviceSnapshot> known = overview_.Current();
  DeviceHolders by_id;
  for (auto& [id, pods] : holders) {
    const fabric::Hca* hca = known->FindHca(id);
    by_id[hca == nullptr ? id : DeviceId(*hca)].merge(pods);
  }
  return by_id;
}

}  // namespace railhead::device_plugin
