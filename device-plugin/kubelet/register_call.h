// SPDX-License-Identifier: Apache-2.0
//
// One Register call to kubelet, on a separate thread, because kubelet calls the plugin before it
// answers.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_REGISTER_CALL_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_REGISTER_CALL_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"

namespace railhead::device_plugin {

class RegisterCall {
 public:
  // Starts the call. `on_done` is called on the call's thread after it.
  RegisterCall(std::string kubelet_socket, std::string endpoint, std::string resource,
               std::function<void()> on_done);
  // Cancels the call if it runs, and waits for its end.
  ~RegisterCall();
  RegisterCall(const RegisterCall&) = delete;
  RegisterCall& operator=(const RegisterCall&) = delete;

  // Nullopt while the call runs. Thread-safe.
  std::optional<absl::Status> result() const;

 private:
  void Run(const std::string& kubelet_socket, const std::string& endpoint,
           const std::string& resource);

  grpc::ClientContext context_;
  const std::function<void()> on_done_;
  mutable std::mutex mutex_;
  std::optional<absl::Status> result_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_REGISTER_CALL_H_
