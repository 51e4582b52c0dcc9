// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/send_queue.h"

#include <sys/socket.h>

#include <cerrno>

namespace railhead::bootstrap {

int SendQueue::SendTo(int socket) {
  int error = 0;
  while (sent_ < bytes_.size()) {
    const ssize_t sent =
        ::send(socket, bytes_.data() + sent_, bytes_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) {
        error = errno;
        sent_ = bytes_.size();
      }
      break;
    }
    sent_ += static_cast<size_t>(sent);
  }
  if (sent_ == bytes_.size()) {
    bytes_.clear();
    sent_ = 0;
  }
  return error;
}

}  // namespace railhead::bootstrap
