// SPDX-License-Identifier: Apache-2.0
//
// How a rank gets the links connected that it begins with.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_CONNECT_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_CONNECT_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/halt.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/link.h"

namespace railhead::comm {

struct Connecting {
  std::unique_ptr<transport::Link> link;  // none: it could not be opened
  absl::Status result;                    // why it is not connected
};

// Works at all links at once, in whatever order the peers come, until each is connected: both sides
// have heard each other over the rail, so the peer's link is connected or will be, whatever this
// rank does next. Sets their results: at once where the cause lies in how the two sides are set up,
// and at the deadline where the network or the peer may still have come. `acceptors` are where the
// peers come. Returns why the wait was ended, if it was.
absl::Status ConnectAll(std::vector<Connecting>& links,
                        absl::Span<const std::shared_ptr<transport::Acceptor>> acceptors,
                        absl::Time deadline, const Halt& halt);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_CONNECT_H_
