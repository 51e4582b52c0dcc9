// SPDX-License-Identifier: Apache-2.0
//
// One connection to a container runtime as an NRI plugin, without the socket: bytes in, bytes out.
// Used by Plugin.
#ifndef RAILHEAD_DEVICE_PLUGIN_NRI_SESSION_H_
#define RAILHEAD_DEVICE_PLUGIN_NRI_SESSION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device-plugin/nri/frames.h"

namespace railhead::device_plugin::nri {

// The plugin registers; the runtime accepts, requests its configuration (events: container
// creation), reports existing containers, and then calls it for every new container, which waits
// for the response. A container must never fail because of the plugin: if a request cannot be
// parsed, the container is created unchanged. Not thread-safe.
class Session {
 public:
  // Returns the registration request, the first bytes to send.
  static std::string Introduction();

  // Returns the responses to these bytes, which may be pieces of any size. FailedPrecondition if
  // the runtime rejects the plugin, InvalidArgument for bytes outside the protocol; close the
  // connection then.
  absl::StatusOr<std::string> Take(absl::string_view bytes);

  // "containerd v2.4.2" after it accepted the plugin; "" before.
  const std::string& runtime() const { return runtime_; }

  // Returns "NAMESPACE/POD/CONTAINER" of containers whose limit was raised since the last call.
  std::vector<std::string> TakeRaised();

 private:
  absl::Status TakeMessage(const Message& message, std::string& answers);
  // Returns the response's payload; Unimplemented for events that the plugin did not subscribe to.
  absl::StatusOr<std::string> Call(const std::string& method, const std::string& payload);
  std::string Configure(const std::string& payload);
  std::string CreateContainer(const std::string& payload);

  MessageReader reader_;
  std::string runtime_;
  std::vector<std::string> raised_;
};

}  // namespace railhead::device_plugin::nri

#endif  // RAILHEAD_DEVICE_PLUGIN_NRI_SESSION_H_
