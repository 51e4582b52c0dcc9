// SPDX-License-Identifier: Apache-2.0
//
// DevicePlugin service of one resource, called by kubelet. Owned by ResourcePlugin.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_PLUGIN_SERVICE_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_PLUGIN_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/files/allocation_store.h"
#include "device-plugin/files/rails_files.h"
#include "device-plugin/offer/renumbering.h"
#include "device-plugin/proto/deviceplugin.grpc.pb.h"

namespace railhead::device_plugin {

struct ServiceOptions {
  std::string node;   // node name in Kubernetes
  RailsFiles* files;  // must outlive the service
  // Returns PCI addresses of the GPUs already allocated to the container that kubelet is admitting;
  // empty if unknown. Called on any thread; may take a moment.
  std::function<std::vector<std::string>()> gpus_in_admission;
  std::string resource = "";
  // Must outlive the service. Null: containers get plain device nodes instead of a CDI device.
  AllocationStore* allocations = nullptr;
  // Returns what kubelet has stored for the containers that hold exactly these ids of the resource
  // (renumbering.h). Called before a container starts, on any thread.
  std::function<std::vector<Grant>(const std::string&, const std::set<std::string>&)> grants_of =
      {};
  // Called, on any thread, when a container starts that grants_of does not know.
  std::function<void()> unverified_start = {};
  // Called before a container starts, only with `allocations`. Called on any thread; may take a
  // moment.
  std::function<KubeletView()> ask_kubelet = {};
  // Returns the host path of the NCCL topology file; "" to give containers none. Called on any
  // thread.
  std::function<std::string(const fabric::NodeInventory&)> topology_file = {};
  // Returns the host path of a new folder for the secret of a container's job; "" to give it none.
  // Called on any thread. May be null.
  std::function<std::string()> secret_folder = {};
};

// Adds the preferred devices of each container of the request (preference.h). `cancelled`: returns
// true if kubelet no longer waits; then the result is CANCELLED. Exposed for tests.
grpc::Status AddPreferences(const DeviceSnapshot& snapshot,
                            const v1beta1::PreferredAllocationRequest& request,
                            const std::vector<std::string>& gpus,
                            const std::function<bool()>& cancelled,
                            v1beta1::PreferredAllocationResponse& response);

// Thread-safe. Calls do not wait for each other: kubelet calls GetDevicePluginOptions while the
// Register call is open, and Allocate while a stream is.
class PluginService final : public v1beta1::DevicePlugin::Service {
 public:
  // `board` must outlive the service. `on_change` is called on any thread after a stream opens or
  // closes.
  PluginService(ServiceOptions options, const DeviceBoard& board, std::function<void()> on_change)
      : options_(std::move(options)), board_(board), on_change_(std::move(on_change)) {}

  struct Streams {
    int open = 0;
    uint64_t opened = 0;  // since the service was made
  };
  Streams streams() const;

  // Requests the end of all open streams; returns before they end.
  void EndStreams();

  // Makes open streams send the board's snapshot if it changed.
  void BoardChanged();

  // Time of the last successful allocation (kube::MonotonicNow); nullopt if there was none.
  std::optional<absl::Time> last_allocation() const;
  // Returns the ids of successful Allocate requests since then (kube::MonotonicNow): kubelet may
  // list them only later.
  std::set<std::string> AllocatedSince(absl::Time since) const;

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* context, const v1beta1::Empty* request,
                                      v1beta1::DevicePluginOptions* response) override;
  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty* request,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override;
  grpc::Status GetPreferredAllocation(grpc::ServerContext* context,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override;
  grpc::Status Allocate(grpc::ServerContext* context, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override;
  grpc::Status PreStartContainer(grpc::ServerContext* context,
                                 const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse* response) override;

 private:
  void AddTopology(const DeviceSnapshot& snapshot, v1beta1::ContainerAllocateResponse* out) const;
  void AddSecret(v1beta1::ContainerAllocateResponse* out) const;
  // Fails if kubelet would start a container with device nodes that are now those of other HCAs.
  absl::Status CheckGrants(const DeviceSnapshot& snapshot, const std::set<std::string>& ids);
  absl::Status AllocateOne(const DeviceSnapshot& snapshot, const std::vector<std::string>& ids,
                           v1beta1::ContainerAllocateResponse* out) const;

  const ServiceOptions options_;
  const DeviceBoard& board_;
  const std::function<void()> on_change_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Streams streams_;
  uint64_t epoch_ = 0;                           // a stream ends when this changes
  std::map<std::string, absl::Time> allocated_;  // time of the last allocation, by device id
  std::set<std::set<std::string>> unverified_;   // logged
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_PLUGIN_SERVICE_H_
