// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/grpc_unix.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace railhead::device_plugin {

std::shared_ptr<grpc::Channel> UnixChannel(const std::string& socket_path) {
  constexpr int kMaxMessage = 64 << 20;  // enough for the list of a node with thousands of pods
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxMessage);
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace railhead::device_plugin
