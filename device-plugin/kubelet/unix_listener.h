// SPDX-License-Identifier: Apache-2.0
//
// Listening Unix socket of the agent's gRPC server, whose client is kubelet. Used by PluginServer.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_UNIX_LISTENER_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_UNIX_LISTENER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace railhead::device_plugin {

// Unix socket that accepts connections of root and the process's own user only. The file's mode
// (0600) enforces that; checking the peer's credentials also covers processes that may open any
// file. Does not remove the file.
class UnixListener {
 public:
  // Creates the socket at `path`. `take` gets each connection, which is non-blocking; it is
  // called on the listener's thread.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Start(
      const std::string& path, std::function<void(FileDescriptor)> take);
  // `take` is not called after this returns.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

 private:
  UnixListener(FileDescriptor socket, FileDescriptor stop, std::string path,
               std::function<void(FileDescriptor)> take);
  void Run();

  const FileDescriptor socket_;
  const FileDescriptor stop_;  // eventfd: readable to end the thread
  const std::string path_;
  const std::function<void(FileDescriptor)> take_;
  std::thread thread_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_UNIX_LISTENER_H_
