// SPDX-License-Identifier: Apache-2.0
//
// Connects the links of a rank at the start of a communicator. Used by setup.h.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_CONNECT_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_CONNECT_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/halt.h"
#include "runtime/transport/link.h"
#include "runtime/transport/wake_event.h"

namespace railhead::comm {

struct Connecting {
  std::unique_ptr<transport::Link> link;  // null: it could not be opened
  absl::Status result;                    // why it is not connected
  bool awaited = true;                    // false: a side has reported that it cannot open it now
};

struct ConnectOptions {
  absl::Time deadline;
  size_t rails = 1;  // links of each peer, which are adjacent
  // Maximum wait for other links once every peer has one.
  absl::Duration grace = absl::InfiniteDuration();
};

// Connects all links concurrently, in any order. A link counts as connected when both sides have
// received data over the rail: the peer's link is connected then, or will be, whatever this rank
// does next. Sets each result: at once if the configuration of the two sides prevents the
// connection, at the end if the network or the peer may be late (IsLate). `wake` is that of the
// acceptors to which the peers connect. Returns why the wait was aborted; OK if it was not.
absl::Status ConnectAll(std::vector<Connecting>& links, transport::WakeEvent& wake,
                        const ConnectOptions& options, const Halt& halt);

// Returns whether a link with this result may connect later.
bool IsLate(const absl::Status& result);
// Returns whether any link of the same peer is connected.
bool AnyConnected(const std::vector<Connecting>& links, size_t rails, size_t peer);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_CONNECT_H_
