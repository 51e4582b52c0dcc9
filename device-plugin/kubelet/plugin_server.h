// SPDX-License-Identifier: Apache-2.0
//
// gRPC server of the plugin on a socket in kubelet's directory. Used by ResourcePlugin.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_PLUGIN_SERVER_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_PLUGIN_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device-plugin/kubelet/plugin_service.h"
#include "device-plugin/kubelet/registration.h"
#include "device-plugin/kubelet/unix_listener.h"

namespace railhead::device_plugin {

// Returns the identity of the socket at `path`; nullopt if there is none.
std::optional<SocketIdentity> IdentifySocket(const std::string& path);

// Removes sockets of killed agent processes from `folder`, whichever resource they served: files
// that have a name of PluginServer and on which no process listens. Sockets of other plugins, and
// of an agent that still runs, remain. An agent that starts at this moment may lose its socket
// between bind() and listen(), and then serves on a new one. Returns the names of removed files.
std::vector<std::string> RemoveAbandonedSockets(const std::string& folder);

// Serves until destroyed, which ends calls and removes the socket. Not thread-safe.
//
// Every server has a unique socket name: it may end after its successor started, in this process
// or, during a rolling update, in another, and must not remove the successor's file.
class PluginServer {
 public:
  // Serves `service`, which must outlive the server, on a socket in `folder`, to root and the
  // process's user only. Returns when kubelet can connect. The socket's file name consists of
  // "railhead-", `name` and a number.
  static absl::StatusOr<std::unique_ptr<PluginServer>> Start(PluginService& service,
                                                             const std::string& folder,
                                                             const std::string& name);
  ~PluginServer();
  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;

  // File name of the socket in the directory.
  const std::string& endpoint() const { return endpoint_; }

  // Returns true if the socket file is still this server's.
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
