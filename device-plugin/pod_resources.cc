// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/pod_resources.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "device-plugin/grpc_unix.h"
#include "device-plugin/proto/podresources.grpc.pb.h"

namespace railhead::device_plugin {

absl::StatusOr<DeviceHolders> AskDeviceHolders(const std::string& socket_path,
                                               const std::string& resource,
                                               std::chrono::milliseconds deadline) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  v1::ListPodResourcesResponse response;
  const grpc::Status status = v1::PodResourcesLister::NewStub(UnixChannel(socket_path))
                                  ->List(&context, v1::ListPodResourcesRequest(), &response);
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("kubelet does not tell at ", socket_path, " which pods hold ", resource, ": ",
                     status.error_message(), "; mount the host's pod-resources folder there"));
  }
  DeviceHolders holders;
  for (const v1::PodResources& pod : response.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      for (const v1::ContainerDevices& devices : container.devices()) {
        if (devices.resource_name() != resource) continue;
        for (const std::string& id : devices.device_ids()) {
          holders[id].insert({pod.namespace_(), pod.name()});
        }
      }
    }
  }
  return holders;
}

absl::StatusOr<std::set<std::string>> DevicesInUse(const std::string& socket_path,
                                                   const std::string& resource,
                                                   std::chrono::milliseconds deadline) {
  const absl::StatusOr<DeviceHolders> holders = AskDeviceHolders(socket_path, resource, deadline);
  if (!holders.ok()) return holders.status();
  std::set<std::string> ids;
  for (const auto& [id, pods] : *holders) ids.insert(id);
  return ids;
}

}  // namespace railhead::device_plugin
