// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/register_call.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "device-plugin/kubelet/grpc_unix.h"
#include "device-plugin/proto/deviceplugin.grpc.pb.h"

namespace railhead::device_plugin {

RegisterCall::RegisterCall(std::string kubelet_socket, std::string endpoint, std::string resource,
                           std::function<void()> on_done)
    : on_done_(std::move(on_done)),
      thread_([this, kubelet_socket = std::move(kubelet_socket), endpoint = std::move(endpoint),
               resource = std::move(resource)] { Run(kubelet_socket, endpoint, resource); }) {}

RegisterCall::~RegisterCall() {
  context_.TryCancel();
  thread_.join();
}

std::optional<absl::Status> RegisterCall::result() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return result_;
}

void RegisterCall::Run(const std::string& kubelet_socket, const std::string& endpoint,
                       const std::string& resource) {
  // Kubelet connects to the plugin within the call, for up to 10 s.
  context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(endpoint);
  request.set_resource_name(resource);
  v1beta1::Empty response;
  const grpc::Status status = v1beta1::Registration::NewStub(UnixChannel(kubelet_socket))
                                  ->Register(&context_, request, &response);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    result_ = status.ok()
                  ? absl::OkStatus()
                  : absl::UnavailableError(absl::StrCat("kubelet at ", kubelet_socket,
                                                        " did not accept the registration of ",
                                                        resource, ": ", status.error_message()));
  }
  on_done_();
}

}  // namespace railhead::device_plugin
