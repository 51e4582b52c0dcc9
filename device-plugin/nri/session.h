// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_DEVICE_PLUGIN_NRI_SESSION_H_
#define RAILHEAD_DEVICE_PLUGIN_NRI_SESSION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device-plugin/nri/frames.h"

namespace railhead::device_plugin::nri {

// One connection to a container runtime as its plugin, without the socket: bytes in, bytes out.
//
// We register; the runtime accepts, asks what we want to know of (containers that are to be
// created), tells what is there already, and from then on asks about every new container, which
// waits for our answer. A container must never fail because of us: what we cannot read is created
// as it is. Not thread-safe.
class Session {
 public:
  // What opens the conversation.
  static std::string Introduction();

  // The answers to these bytes, in pieces of any size. FailedPrecondition when the runtime refuses
  // us, InvalidArgument when it speaks something else; the connection is of no use then.
  absl::StatusOr<std::string> Take(absl::string_view bytes);

  // "containerd v2.4.2" once it has accepted us; "" before.
  const std::string& runtime() const { return runtime_; }

  // "NAMESPACE/POD/CONTAINER" of those whose limit was raised since the last call.
  std::vector<std::string> TakeRaised();

 private:
  absl::Status TakeMessage(const Message& message, std::string& answers);
  // The payload of the answer; Unimplemented for what we did not ask for.
  absl::StatusOr<std::string> Call(const std::string& method, const std::string& payload);
  std::string Configure(const std::string& payload);
  std::string CreateContainer(const std::string& payload);

  MessageReader reader_;
  std::string runtime_;
  std::vector<std::string> raised_;
};

}  // namespace railhead::device_plugin::nri

#endif  // RAILHEAD_DEVICE_PLUGIN_NRI_SESSION_H_
