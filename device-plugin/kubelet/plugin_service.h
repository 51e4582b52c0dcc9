// SPDX-License-Identifier: Apache-2.0
//
// The DevicePlugin service that kubelet calls.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_PLUGIN_SERVICE_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_PLUGIN_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "device-plugin/files/rails_files.h"
#include "device-plugin/grant/allocation_store.h"
#include "device-plugin/offer/device_list.h"
#include "device-plugin/proto/deviceplugin.grpc.pb.h"

namespace railhead::device_plugin {

struct ServiceOptions {
  std::string node;   // its name in Kubernetes
  RailsFiles* files;  // must outlive the service
  // PCI addresses of the GPUs that the container which kubelet is about to give devices to has got
  // already; empty when that is not known. Called from any thread; may take a moment.
  std::function<std::vector<std::string>()> gpus_in_admission;
  std::string resource = "";
  // Must outlive the service. Null: containers get plain device nodes, and no CDI device.
  AllocationStore* allocations = nullptr;
  // Asked before a container starts, with `allocations` only. Called from any thread; may take a
  // moment.
  std::function<KubeletView()> ask_kubelet = {};
  // The host's path of the file that tells NCCL how this machine is built; "" where containers get
  // none. Called from any thread.
  std::function<std::string(const fabric::NodeInventory&)> topology_file = {};
};

// Thread-safe. No call waits for another: kubelet asks GetDevicePluginOptions while our own
// Register call is still open, and calls Allocate while a stream is.
class PluginService final : public v1beta1::DevicePlugin::Service {
 public:
  // `board` must outlive the service. `on_change` is called, from any thread, when a stream has
  // opened or closed.
  PluginService(ServiceOptions options, const DeviceBoard& board, std::function<void()> on_change)
      : options_(std::move(options)), board_(board), on_change_(std::move(on_change)) {}

  struct Streams {
    int open = 0;
    uint64_t opened = 0;  // since the service was made
  };
  Streams streams() const;

  // Asks every stream that is open now to end; returns before they have.
  void EndStreams();

  // Makes the open streams look at the board.
  void BoardChanged();

  // When an Allocate call was last answered.
  std::optional<absl::Time> last_allocation() const;

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
  absl::Status AllocateOne(const DeviceSnapshot& snapshot, const std::vector<std::string>& ids,
                           v1beta1::ContainerAllocateResponse* out) const;

  const ServiceOptions options_;
  const DeviceBoard& board_;
  const std::function<void()> on_change_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Streams streams_;
  uint64_t epoch_ = 0;  // a stream ends when this is not what it was at the stream's beginning
  std::optional<absl::Time> last_allocation_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_PLUGIN_SERVICE_H_
