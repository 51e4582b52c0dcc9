// SPDX-License-Identifier: Apache-2.0
//
// Lazy connections of a communicator (rails::Reach). Used by setup.h.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_REACH_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_REACH_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/comm/setup/agreement.h"
#include "runtime/rails/mesh.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/link.h"
#include "runtime/transport/wake_event.h"

namespace railhead::comm {

// One of this rank's rails. `open` opens a link to a peer, given the address of its acceptor.
struct OpenRail {
  rails::RailName name;
  std::shared_ptr<transport::Acceptor> acceptor;
  std::function<absl::StatusOr<std::unique_ptr<transport::Link>>(
      std::shared_ptr<transport::Acceptor> acceptor, transport::Locator peer,
      absl::string_view name)>
      open;
};

// Returns the means by which a mesh connects to ranks without a peer yet; the watchdog looks up
// their addresses, and wakes the mesh when the job has failed. `known`: ranks whose addresses are
// known already. The addresses of these rails start at index `first` of a rank's addresses. The
// watchdog must outlive the result.
rails::Reach ReachOthers(std::vector<OpenRail> rails, std::map<int, Whereabouts> known,
                         int world_size, size_t first, const Logger& log, bootstrap::Watch& watch);

// Signals the event, as long as it exists, when the watchdog has news: the job has failed, or
// the address of a rank has arrived.
void WakeOnNews(bootstrap::Watch& watch, const std::shared_ptr<transport::WakeEvent>& wake);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_REACH_H_
