// SPDX-License-Identifier: Apache-2.0
//
// Our gRPC server on a socket in kubelet's folder.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_PLUGIN_SERVER_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_PLUGIN_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "device-plugin/kubelet/plugin_service.h"
#include "device-plugin/kubelet/registration.h"
#include "device-plugin/kubelet/unix_listener.h"

namespace railhead::device_plugin {

// Which incarnation of a socket stands at `path`; nothing when there is no socket.
std::optional<SocketIdentity> IdentifySocket(const std::string& path);

// Serves while it lives; its end ends the calls and removes the socket. Not thread-safe.
//
// Every server gets a socket with a name of its own: it may end later than its successor begins, in
// this process or, during a rolling update, in another one, and must not remove the wrong file.
class PluginServer {
 public:
  // Serves `service`, which must outlive the server, on a socket in `folder`, to root and our own
  // user only, and returns when kubelet can connect. Removes the sockets that earlier processes of
  // ours left there.
  static absl::StatusOr<std::unique_ptr<PluginServer>> Start(PluginService& service,
                                                             const std::string& folder,
                                                             const std::string& name);
  ~PluginServer();
  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;

  // The socket's file name, in the folder.
  const std::string& endpoint() const { return endpoint_; }

  // Whether our socket is still in its place.
  bool InPlace() const;

 private:
  PluginServer(PluginService& service, std::string folder, std::string endpoint)
      : service_(service), folder_(std::move(folder)), endpoint_(std::move(endpoint)) {}

  PluginService& service_;
  const std::string folder_;
  const std::string endpoint_;
  SocketIdentity identity_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<UnixListener> listener_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_PLUGIN_SERVER_H_
