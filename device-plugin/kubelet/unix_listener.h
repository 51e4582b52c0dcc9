// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_UNIX_LISTENER_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_UNIX_LISTENER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"

namespace railhead::device_plugin {

// A Unix socket that only root, and the user we are, may connect to. The file's mode (0600) says so
// already; that the kernel says who is there holds also for processes that may open any file. The
// file stays when the listener ends.
class UnixListener {
 public:
  // Makes the socket at `path`. `take` gets each connection, which does not block, and owns it; it
  // is called in a thread of the listener's.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Start(const std::string& path,
                                                             std::function<void(int fd)> take);
  // Once it has returned, `take` is called no more.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

 private:
  UnixListener(int socket, int stop, std::string path, std::function<void(int fd)> take);
  void Run();

  const int socket_;
  const int stop_;  // an eventfd: readable when the thread is to end
  const std::string path_;
  const std::function<void(int fd)> take_;
  std::thread thread_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_UNIX_LISTENER_H_
