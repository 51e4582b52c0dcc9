// SPDX-License-Identifier: Apache-2.0
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

namespace railhead::comm {

// One of this rank's rails, and how it opens a link to a peer by the whereabouts of its acceptor.
struct OpenRail {
  rails::RailName name;
  std::shared_ptr<transport::Acceptor> acceptor;
  std::function<absl::StatusOr<std::unique_ptr<transport::Link>>(
      std::shared_ptr<transport::Acceptor> acceptor, transport::Locator peer,
      absl::string_view name)>
      open;
};

// How a mesh gets at ranks of the world that it has no peer for yet: the watch finds out where they
// are. `known` are those of whom this rank knows already. The addresses of the acceptors of all
// these rails begin with number `first` of a rank's. The watch outlives the result.
rails::Reach ReachOthers(std::vector<OpenRail> rails, std::map<int, Whereabouts> known,
                         int world_size, size_t first, const Logger& log, bootstrap::Watch& watch);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_REACH_H_
