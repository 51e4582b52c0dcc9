// SPDX-License-Identifier: Apache-2.0
//
// Bytes that wait until a socket accepts them. Used by Links and TreeConnections.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_SEND_QUEUE_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_SEND_QUEUE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead::bootstrap {

class SendQueue {
 public:
  void Add(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }
  bool empty() const { return bytes_.empty(); }
  // Sends as much as the socket accepts without a wait. Returns 0, or the errno of a dead
  // connection, and then drops everything. After EPIPE, which a close by the peer causes, reading
  // shows the end of the stream; but it does so also after another error that this has returned.
  int SendTo(int socket);

 private:
  std::string bytes_;
  size_t sent_ = 0;  // of these
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_SEND_QUEUE_H_
