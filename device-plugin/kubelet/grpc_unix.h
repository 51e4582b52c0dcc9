// SPDX-License-Identifier: Apache-2.0
//
// gRPC over Unix sockets, as kubelet uses it.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_GRPC_UNIX_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_GRPC_UNIX_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace railhead::device_plugin {

// A channel of its own to the server on that socket: it shares no connection and, above all, no
// reconnect back-off with an earlier channel to a server that is gone.
std::shared_ptr<grpc::Channel> UnixChannel(const std::string& socket_path);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_GRPC_UNIX_H_
