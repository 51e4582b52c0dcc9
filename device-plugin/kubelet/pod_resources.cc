// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/pod_resources.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/kubelet/grpc_unix.h"
#include "device-plugin/proto/podresources.grpc.pb.h"

namespace railhead::device_plugin {

absl::StatusOr<std::vector<ContainerDevices>> ListContainerDevices(
    const std::string& socket_path, std::chrono::milliseconds deadline) {
  absl::StatusOr<PodList> list = ListPods(socket_path, deadline);
  if (!list.ok()) return list.status();
  return std::move(list->containers);
}

absl::StatusOr<PodList> ListPods(const std::string& socket_path,
                                 std::chrono::milliseconds deadline) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  v1::ListPodResourcesResponse response;
  const grpc::Status status = v1::PodResourcesLister::NewStub(UnixChannel(socket_path))
                                  ->List(&context, v1::ListPodResourcesRequest(), &response);
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the kubelet at ", socket_path, " does not list the devices of pods: ",
                     status.error_message(), "; mount the host's pod-resources directory there"));
  }
  PodList list;
  for (const v1::PodResources& pod : response.pod_resources()) {
    list.pods.emplace(pod.namespace_(), pod.name());
    for (const v1::ContainerResources& container : pod.containers()) {
      ContainerDevices held{pod.namespace_(), pod.name(), container.name(), {}};
      for (const v1::ContainerDevices& devices : container.devices()) {
        std::vector<std::string>& ids = held.devices[devices.resource_name()];
        ids.insert(ids.end(), devices.device_ids().begin(), devices.device_ids().end());
      }
      if (!held.devices.empty()) list.containers.push_back(std::move(held));
    }
  }
  return list;
}

}  // namespace railhead::device_plugin
