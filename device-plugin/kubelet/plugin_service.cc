// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/plugin_service.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/secret_folder_name.h"
#include "device-plugin/grant/allocation.h"
#include "device-plugin/grant/preference.h"
#include "device-plugin/offer/renumbering.h"
#include "kube/monotonic.h"

namespace railhead::device_plugin {
namespace {

// Maximum time until a stream detects that kubelet is gone. gRPC's blocking interface must be
// polled.
constexpr std::chrono::milliseconds kCancelPoll(100);

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

v1beta1::ListAndWatchResponse ToResponse(const DeviceSnapshot& snapshot) {
  v1beta1::ListAndWatchResponse response;
  for (const Device& device : snapshot.devices) {
    v1beta1::Device* out = response.add_devices();
    out->set_id(device.id);
    out->set_health(snapshot.Healthy(device) ? "Healthy" : "Unhealthy");
    if (device.hca.numa_node >= 0) {
      out->mutable_topology()->add_nodes()->set_id(device.hca.numa_node);
    }
  }
  return response;
}

void Fill(const Allocation& allocation, const std::string& rails_path,
          v1beta1::ContainerAllocateResponse* out) {
  (*out->mutable_envs())["NCCL_IB_HCA"] = allocation.nccl_ib_hca;
  for (const std::string& path : allocation.char_devices) {
    v1beta1::DeviceSpec* device = out->add_devices();
    device->set_host_path(path);
    device->set_container_path(path);
    device->set_permissions("rw");
  }
  v1beta1::Mount* mount = out->add_mounts();
  mount->set_host_path(rails_path);
  mount->set_container_path(kRailsPathInPod);
  mount->set_read_only(true);
}

}  // namespace

grpc::Status AddPreferences(const DeviceSnapshot& snapshot,
                            const v1beta1::PreferredAllocationRequest& request,
                            const std::vector<std::string>& gpus,
                            const std::function<bool()>& cancelled,
                            v1beta1::PreferredAllocationResponse& response) {
  StepLimit limit(StepLimit::kMost, cancelled);  // of the whole call
  for (const v1beta1::ContainerPreferredAllocationRequest& container :
       request.container_requests()) {
    if (cancelled()) {
      return grpc::Status(grpc::StatusCode::CANCELLED, "kubelet has cancelled the call");
    }
    Wish wish;
    wish.available.assign(container.available_deviceids().begin(),
                          container.available_deviceids().end());
    wish.must_include.assign(container.must_include_deviceids().begin(),
                             container.must_include_deviceids().end());
    wish.size = static_cast<size_t>(std::max(container.allocation_size(), 0));
    wish.gpus = gpus;
    const std::vector<std::string> ids = Prefer(snapshot, wish, limit);
    spdlog::info("prefer {} for a container with {}", absl::StrJoin(ids, ", "),
                 gpus.empty() ? "no known GPU" : "GPU " + absl::StrJoin(gpus, ", "));
    auto* out = response.add_container_responses();
    for (const std::string& id : ids) out->add_deviceids(id);
  }
  return grpc::Status::OK;
}

PluginService::Streams PluginService::streams() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return streams_;
}

void PluginService::EndStreams() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++epoch_;
  }
  changed_.notify_all();
}

void PluginService::BoardChanged() {
  // The lock orders this after a stream's read of the board, so that its wait gets the wake-up.
  { const std::lock_guard<std::mutex> lock(mutex_); }
  changed_.notify_all();
}

std::optional<absl::Time> PluginService::last_allocation() const {
  std::optional<absl::Time> last;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [id, at] : allocated_) last = std::max(last, std::optional<absl::Time>(at));
  return last;
}

std::set<std::string> PluginService::AllocatedSince(absl::Time since) const {
  std::set<std::string> ids;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [id, at] : allocated_) {
    if (at >= since) ids.insert(id);
  }
  return ids;
}

grpc::Status PluginService::GetDevicePluginOptions(grpc::ServerContext* /*context*/,
                                                   const v1beta1::Empty* /*request*/,
                                                   v1beta1::DevicePluginOptions* response) {
  response->set_pre_start_required(true);
  response->set_get_preferred_allocation_available(true);
  return grpc::Status::OK;
}

grpc::Status PluginService::ListAndWatch(
    grpc::ServerContext* context, const v1beta1::Empty* /*request*/,
    grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) {
  uint64_t epoch = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++streams_.open;
    ++streams_.opened;
    epoch = epoch_;
  }
  on_change_();
  uint64_t sent = 0;
  while (true) {
    const std::shared_ptr<const DeviceSnapshot> snapshot = board_.Current();
    if (snapshot->generation != sent) {
      if (!writer->Write(ToResponse(*snapshot))) break;
      sent = snapshot->generation;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    if (epoch_ != epoch || context->IsCancelled()) break;
    if (board_.Current()->generation == sent) changed_.wait_for(lock, kCancelPoll);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    --streams_.open;
  }
  on_change_();
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the device plugin ends this stream");
}

grpc::Status PluginService::GetPreferredAllocation(
    grpc::ServerContext* context, const v1beta1::PreferredAllocationRequest* request,
    v1beta1::PreferredAllocationResponse* response) {
  const std::shared_ptr<const DeviceSnapshot> snapshot = board_.Current();
  std::vector<std::string> gpus;
  if (!snapshot->inventory.gpus.empty()) gpus = options_.gpus_in_admission();
  return AddPreferences(
      *snapshot, *request, gpus, [context] { return context->IsCancelled(); }, *response);
}

void PluginService::AddTopology(const DeviceSnapshot& snapshot,
                                v1beta1::ContainerAllocateResponse* out) const {
  const std::string path = options_.topology_file(snapshot.inventory);
  if (path.empty()) return;
  // Set through kubelet, with CDI too: with kubelet, the container's own value takes precedence.
  (*out->mutable_envs())["NCCL_TOPO_FILE"] = kTopologyPathInPod;
  v1beta1::Mount* mount = out->add_mounts();
  mount->set_host_path(path);
  mount->set_container_path(kTopologyPathInPod);
  mount->set_read_only(true);
}

void PluginService::AddSecret(v1beta1::ContainerAllocateResponse* out) const {
  if (options_.secret_folder == nullptr) return;
  const std::string path = options_.secret_folder();
  if (path.empty()) return;
  // Set through kubelet, with CDI too: kubelet stores it with the pod's uid, which identifies the
  // owner.
  v1beta1::Mount* mount = out->add_mounts();
  mount->set_host_path(path);
  mount->set_container_path(kSecretFolderInPod);
  mount->set_read_only(true);
}

absl::Status PluginService::AllocateOne(const DeviceSnapshot& snapshot,
                                        const std::vector<std::string>& ids,
                                        v1beta1::ContainerAllocateResponse* out) const {
  AddTopology(snapshot, out);
  if (options_.allocations != nullptr) {
    const absl::StatusOr<std::string> name =
        options_.allocations->Add(snapshot, options_.resource, ids);
    if (!name.ok()) return name.status();
    out->add_cdi_devices()->set_name(*name);
    return absl::OkStatus();
  }
  const absl::StatusOr<Allocation> allocation = PlanAllocation(snapshot, options_.node, ids);
  if (!allocation.ok()) return allocation.status();
  const absl::StatusOr<std::string> path = options_.files->Store(allocation->rails);
  if (!path.ok()) return path.status();
  Fill(*allocation, *path, out);
  return absl::OkStatus();
}

grpc::Status PluginService::Allocate(grpc::ServerContext* /*context*/,
                                     const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* response) {
  const std::shared_ptr<const DeviceSnapshot> snapshot = board_.Current();
  for (const v1beta1::ContainerAllocateRequest& container : request->container_requests()) {
    const std::vector<std::string> ids(container.devices_ids().begin(),
                                       container.devices_ids().end());
    v1beta1::ContainerAllocateResponse* out = response->add_container_responses();
    const absl::Status status = AllocateOne(*snapshot, ids, out);
    if (!status.ok()) {
      spdlog::warn("{}", std::string(status.message()));
      return ToGrpc(status);
    }
    AddSecret(out);
    {
      // Before the response: the container may start at once.
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const std::string& id : ids) allocated_[id] = kube::MonotonicNow();
    }
    spdlog::info("allocated {} to a container", absl::StrJoin(ids, ", "));
  }
  return grpc::Status::OK;
}

absl::Status PluginService::CheckGrants(const DeviceSnapshot& snapshot,
                                        const std::set<std::string>& ids) {
  bool known = false;
  for (const Grant& grant : options_.grants_of(options_.resource, ids)) {
    if (grant.rails.empty()) continue;
    known = true;
    const std::optional<Renumbering> found = FindRenumbering(grant, snapshot.inventory);
    if (!found.has_value()) continue;
    return absl::FailedPreconditionError(absl::StrCat("PreStartContainer: ", options_.resource, " ",
                                                      absl::StrJoin(ids, ", "), ": ",
                                                      found->message));
  }
  // With CDI, the device nodes of now are in the spec.
  if (known || options_.allocations != nullptr) return absl::OkStatus();
  options_.unverified_start();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (unverified_.insert(ids).second) {
    spdlog::warn(
        "a container starts with {} of {}, and the agent does not know which device nodes it was "
        "given: kubelet's checkpoint or its rails.json is missing",
        absl::StrJoin(ids, ", "), options_.resource);
  }
  return absl::OkStatus();
}

grpc::Status PluginService::PreStartContainer(grpc::ServerContext* /*context*/,
                                              const v1beta1::PreStartContainerRequest* request,
                                              v1beta1::PreStartContainerResponse* /*response*/) {
  const std::vector<std::string> ids(request->devices_ids().begin(), request->devices_ids().end());
  const std::shared_ptr<const DeviceSnapshot> snapshot = board_.Current();
  absl::Status status = CheckGrants(*snapshot, {ids.begin(), ids.end()});
  if (status.ok() && options_.allocations != nullptr) {
    status =
        options_.allocations->Prepare(*snapshot, options_.resource, ids, options_.ask_kubelet());
  }
  if (!status.ok()) spdlog::warn("{}", std::string(status.message()));
  return ToGrpc(status);
}

}  // namespace railhead::device_plugin
