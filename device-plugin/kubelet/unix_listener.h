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

// Unix socket that accepts connections of root and the process's own user only. The file's mode
// (0600) enforces that; checking the peer's credentials also covers processes that may open any
// file. Does not remove the file.
class UnixListener {
 public:
  // Creates the socket at `path`. `take` gets and owns each connection, which is non-blocking; it
  // is called on the listener's thread.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Start(const std::string& path,
                                                             std::function<void(int fd)> take);
  // `take` is not called after this returns.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

 private:
  UnixListener(int socket, int stop, std::string path, std::function<void(int fd)> take);
  void Run();

  const int socket_;
  const int stop_;  // eventfd: readable to end the thread
  const std::string path_;
  const std::function<void(int fd)> take_;
  std::thread thread_;
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_UNIX_LISTENER_H_
