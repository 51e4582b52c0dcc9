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
  // Sends as much as the socket accepts without a wait. Drops everything if the connection is dead,
  // which its reading side reports.
  void SendTo(int socket);

 private:
  std::string bytes_;
  size_t sent_ = 0;  // of these
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_SEND_QUEUE_H_
