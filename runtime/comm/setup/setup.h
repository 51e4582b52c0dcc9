// SPDX-License-Identifier: Apache-2.0
//
// From ranks that have met to ranks that are connected: everybody reports what it has, rank 0
// decides for all (agreement.h), and links are opened and connected (connect.h). When a rail turns
// out not to work on some rank, that goes into the rank's report and rank 0 decides again, so that
// the job ends up on what really works everywhere, or on all ranks with the same reason.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_SETUP_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_SETUP_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/halt.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/comm/setup/decision.h"
#include "runtime/comm/setup/rdma_rail.h"
#include "runtime/config/env.h"
#include "runtime/device/cuda_api.h"
#include "runtime/net/fd.h"
#include "runtime/preflight/facts.h"
#include "runtime/rails/mesh.h"
#include "runtime/rails/peer.h"
#include "runtime/shm/segment.h"

namespace railhead::comm {

struct SetupOptions {
  config::Settings settings;
  // What is wrong with the settings; fails the setup on all ranks.
  absl::Status problem;
  std::string root = "/";  // where the rails file is looked for
  // Why the node agent gave this rank no secret of the job; "" if it did, or was not asked.
  std::string no_secret_cause;
  OpenRdmaRail open_rdma_rail;
  std::string place;                         // see RankReport
  std::shared_ptr<device::CudaSource> cuda;  // null: there are no GPUs
  // Whether this rank connects to all its neighbours before the job starts, also in a large world,
  // where ranks else do that when they first have something for each other.
  bool all_neighbours = false;
  // Under which rank metrics count it, which a family has in common; none: this communicator's.
  std::optional<int> rank_in_metrics;
};

// What a communicator runs on.
struct Fabric {
  Decision decision;
  std::vector<rails::RailName> rails;
  preflight::RankFacts facts;         // of this rank, about the RDMA rails that it was given
  int pods = 1;                       // in which the ranks are
  int partner = 0;                    // with whom this rank measures the rails
  std::string trouble;                // why it has none to look at; "" if it has, or nobody asked
  std::vector<std::string> warnings;  // about those in use, for the log
  std::map<int, std::unique_ptr<RdmaRail>> devices;   // by rail; outlive the peers
  std::map<int, std::unique_ptr<rails::Peer>> peers;  // by rank; none with shared memory
  // How to get at all others, whom the watch finds; it outlives the result.
  std::function<rails::Reach(bootstrap::Watch& watch)> reach;
  // The same for transfers (lane.h), which have acceptors of their own.
  std::function<rails::Reach(bootstrap::Watch& watch)> lane_reach;
  // Where each rank can be met again, for a group without those that were lost
  // (bootstrap::EncodePlace), by what key, and this rank's socket.
  std::vector<std::string> rejoin_addresses;
  std::string rejoin_key;
  std::optional<net::Fd> rejoin_listener;
  // With shared memory, of this rank's place: without rails a group's and then its mailbox's, and
  // with them a hierarchy's; in the end the mailbox's of transfers.
  std::optional<shm::Segment> segment;
  std::byte* lane_memory = nullptr;  // there
};

// Must be called by all ranks; on an error all ranks return its text. `aborted` says why this rank
// is to give up.
absl::StatusOr<Fabric> SetUp(bootstrap::Bootstrap& bootstrap, const SetupOptions& options,
                             const Halt& aborted = nullptr);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_SETUP_H_
