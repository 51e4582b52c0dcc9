// SPDX-License-Identifier: Apache-2.0
//
// Setup of a communicator after its ranks have met: every rank reports what it has, rank 0 decides
// for all (agreement.h), and the ranks open and connect links (connect.h). A rail that cannot be
// opened, or does not connect, is a state and not an error while each pair of ranks has another
// one: the communicator starts, and the rail joins when it is up (rails/peer.h). If a pair has
// none, its ranks report it and rank 0 decides again. So all ranks use the same transport, or fail
// with the same reason. Used by Communicator and by the pre-flight check.
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
#include "runtime/comm/setup/rejoin.h"
#include "runtime/comm/setup/tcp_rail.h"
#include "runtime/comm/setup/wire_check.h"
#include "runtime/config/env.h"
#include "runtime/device/cuda_api.h"
#include "runtime/preflight/facts.h"
#include "runtime/rails/mesh.h"
#include "runtime/rails/peer.h"
#include "runtime/shm/segment.h"

namespace railhead::comm {

struct SetupOptions {
  config::Settings settings;
  // An error in the settings; fails the setup on all ranks.
  absl::Status problem;
  std::string root = "/";  // directory in which the rails file is looked up
  // Why the node agent gave this rank no job secret; "" if it did, or was not asked.
  std::string no_secret_cause;
  OpenRdmaRail open_rdma_rail;
  std::string place;                         // see RankReport
  std::shared_ptr<device::CudaSource> cuda;  // null: there are no GPUs
  // If true, this rank connects to all its neighbours before the job starts. Otherwise, in large
  // worlds, ranks connect on first use.
  bool all_neighbours = false;
  Met met;                   // see RankReport
  std::vector<TcpRail> tcp;  // of the communicator that this one is made of
  // Split off another communicator, which has reported the rails that both have.
  bool split_off = false;
};

// Everything that a communicator runs on.
struct Fabric {
  Decision decision;
  std::vector<rails::RailName> rails;
  std::vector<TcpRail> tcp;    // of this rank, used or not
  preflight::RankFacts facts;  // of this rank, about its RDMA rails
  int pods = 1;                // number of pods of these ranks
  int partner = 0;             // the rank with which this rank measures the rails
  Met met;                     // what this rank has met each of the others over
  std::string trouble;         // why its rails are unknown; "" if they are known or not needed
  std::vector<std::string> warnings;                  // about the rails in use, for the log
  std::map<int, std::unique_ptr<RdmaRail>> devices;   // by rail; must outlive the peers
  std::map<int, std::unique_ptr<rails::Peer>> peers;  // by rank; empty with shared memory
  // Connects to all other ranks, found by the watchdog, which must outlive the result.
  // Null with shared memory.
  std::function<rails::Reach(bootstrap::Watch& watch)> reach;
  // The connections for transfers (lane.h), which have their own acceptors.
  std::function<rails::Reach(bootstrap::Watch& watch)> lane_reach;
  // Addresses where ranks meet again after a loss of ranks (bootstrap::EncodePlace), by rank; the
  // key of these; and the socket of this process, if it could be opened.
  std::vector<std::string> rejoin_addresses;
  std::string rejoin_key;
  std::shared_ptr<RejoinListener> rejoin_listener;
  // Shared memory of this rank's place, if any. Contents, without rails: group, its mailbox; with
  // rails: hierarchy. Then in both cases the mailbox of transfers.
  std::optional<shm::Segment> segment;
  std::byte* lane_memory = nullptr;  // within segment
  WireCheck wires;                   // begun when the ranks were connected
};

// All ranks must call it; after an error, all ranks return its text. `aborted`: why this rank must
// stop.
absl::StatusOr<Fabric> SetUp(bootstrap::Bootstrap& bootstrap, const SetupOptions& options,
                             const Halt& aborted = nullptr);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_SETUP_H_
