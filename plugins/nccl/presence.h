// SPDX-License-Identifier: Apache-2.0
//
// Detects the end of the other process of a connection while all its rails are lost: its machine
// then refuses connections at every address where the process has listened. A network that is down
// does not refuse any.
#ifndef RAILHEAD_PLUGINS_NCCL_PRESENCE_H_
#define RAILHEAD_PLUGINS_NCCL_PRESENCE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

namespace railhead::nccl {

// Not thread-safe. No call waits.
class Presence {
 public:
  // Sets the addresses where the process listens. Untrusted.
  void Learn(std::vector<net::SocketAddress> places);
  // Call it while a rail is up.
  void Forget() { refused_ = 0; }
  // Call it repeatedly while all rails are lost. Returns true once all addresses have refused for
  // 3 s, each at least twice: a firewall that resets connections may do so for a moment. False
  // without addresses.
  bool HasEnded(absl::Time now);
  // For messages: "10.0.0.1:80, 10.0.1.1:80".
  std::string Places() const;

 private:
  void Begin(absl::Time now);
  void Finish(absl::Time now);
  void Count(int error, absl::Time now);

  std::vector<net::SocketAddress> places_;
  size_t refused_ = 0;                       // dials in a row, of one place after the other
  absl::Time first_ = absl::InfinitePast();  // of these
  net::Fd dialed_;
  absl::Time give_up_ = absl::InfinitePast();
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_PRESENCE_H_
