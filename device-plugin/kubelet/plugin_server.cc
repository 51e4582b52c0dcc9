// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/plugin_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/file_descriptor.h"
#include "device-plugin/files/atomic_file.h"
#include "device-plugin/kubelet/plugin_service.h"
#include "device-plugin/kubelet/unix_listener.h"

namespace railhead::device_plugin {
namespace {

// A server's file is PREFIX NAME "-" NUMBER SUFFIX.
constexpr char kSocketPrefix[] = "railhead-";
constexpr char kSocketSuffix[] = ".sock";
constexpr size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;

// Returns whether the socket's file exists but no process listens on it.
bool IsAbandoned(const std::string& path) {
  if (path.size() > kMaxSocketPath || !IdentifySocket(path).has_value()) return false;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const FileDescriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return probe.valid() &&
         connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
         errno == ECONNREFUSED;
}

// Returns whether a file name has the form of PluginServer's.
bool IsServerName(absl::string_view file) {
  if (!absl::ConsumePrefix(&file, kSocketPrefix) || !absl::ConsumeSuffix(&file, kSocketSuffix)) {
    return false;
  }
  const size_t dash = file.rfind('-');
  if (dash == absl::string_view::npos || dash == 0) return false;
  const absl::string_view number = file.substr(dash + 1);
  return !number.empty() && std::all_of(number.begin(), number.end(), absl::ascii_isdigit);
}

}  // namespace

std::optional<SocketIdentity> IdentifySocket(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return std::nullopt;
  return SocketIdentity{info.st_dev, info.st_ino,
                        int64_t{info.st_ctim.tv_sec} * 1000000000 + info.st_ctim.tv_nsec};
}

std::vector<std::string> RemoveAbandonedSockets(const std::string& folder) {
  std::vector<std::string> removed;
  for (const std::string& path : ListFiles(folder, kSocketPrefix, kSocketSuffix)) {
    const std::string file = path.substr(path.rfind('/') + 1);
    if (IsServerName(file) && IsAbandoned(path) && unlink(path.c_str()) == 0) {
      removed.push_back(file);
    }
  }
  return removed;
}

absl::StatusOr<std::unique_ptr<PluginServer>> PluginServer::Start(PluginService& service,
                                                                  const std::string& folder,
                                                                  const std::string& name) {
  // The time makes the name unique among all servers of this and earlier agent processes.
  const int64_t stamp = std::chrono::duration_cast<std::chrono::microseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
  const std::string endpoint = absl::StrCat(kSocketPrefix, name, "-", stamp, kSocketSuffix);
  const std::string path = absl::StrCat(folder, "/", endpoint);
  if (path.size() > kMaxSocketPath) {
    return absl::InvalidArgumentError(
        absl::StrCat("the socket path ", path, " is longer than the ", kMaxSocketPath,
                     " bytes that Unix sockets allow; choose a shorter --kubelet-dir"));
  }
  auto server = std::unique_ptr<PluginServer>(new PluginServer(service, folder, endpoint));
  grpc::ServerBuilder builder;  // without a port: connections come from the listener
  // One completion queue suffices for few calls, and saves a thread.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.RegisterService(&service);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) return absl::InternalError("cannot start a gRPC server");
  absl::StatusOr<std::unique_ptr<UnixListener>> listener =
      UnixListener::Start(path, [grpc_server = server->server_.get()](FileDescriptor fd) {
        grpc::AddInsecureChannelFromFd(grpc_server, fd.Release());
      });
  if (!listener.ok()) {
    return absl::UnavailableError(absl::StrCat(
        listener.status().message(), "; check that the directory exists and is writable"));
  }
  server->listener_ = *std::move(listener);
  const std::optional<SocketIdentity> identity = IdentifySocket(path);
  if (!identity.has_value()) {
    return absl::UnavailableError(
        absl::StrCat(path, " was removed immediately after its creation"));
  }
  server->identity_ = *identity;
  return server;
}

PluginServer::~PluginServer() {
  if (server_ == nullptr) return;
  listener_.reset();
  service_.EndStreams();
  // Calls in flight can finish; a stream whose reader has stopped reading is ended.
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(3));
  server_.reset();
  if (InPlace()) unlink(absl::StrCat(folder_, "/", endpoint_).c_str());
}

bool PluginServer::InPlace() const {
  const std::optional<SocketIdentity> now = IdentifySocket(absl::StrCat(folder_, "/", endpoint_));
  return now.has_value() && now->device == identity_.device && now->inode == identity_.inode;
}

}  // namespace railhead::device_plugin
