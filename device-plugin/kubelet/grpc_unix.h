// SPDX-License-Identifier: Apache-2.0
//
// gRPC channels over Unix sockets, as kubelet uses them.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_GRPC_UNIX_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_GRPC_UNIX_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace railhead::device_plugin {

// Returns a new channel to the server on that socket. It shares neither a connection nor, above
// all, the reconnect backoff of an earlier channel.
std::shared_ptr<grpc::Channel> UnixChannel(const std::string& socket_path);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_GRPC_UNIX_H_
