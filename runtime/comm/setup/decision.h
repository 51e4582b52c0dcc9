// SPDX-License-Identifier: Apache-2.0
//
// Transport decision. Every rank reports what it requested and what it has; rank 0 decides from all
// reports (agreement.h). Pure. Used by setup.h.
//
// If all ranks can share memory, and no rank requires RDMA or chose another transport, they use
// shared memory. If a rank chose shared memory (RAILHEAD_TRANSPORT=shm) and it is not available,
// the job fails on all ranks. Otherwise rails connect the ranks. In addition, ranks of one place
// share memory, if some place has at least two ranks and no rank chose a transport; places may
// differ in size. If a choice prevents this, Decision::flat_reason names its rank.
//
// A rail has a state for each rank (it can be opened or not) and for each pair of ranks (connected
// or not). A rail that is down when a communicator starts is part of it, and is used when it is up
// (rails/peer.h). The ranks need only one rail for each pair:
//
//   every pair has an RDMA rail | decision
//   ----------------------------+----------------------------------------------------------------
//   yes                         | verbs, on the rails that every rank was given; less than
//                               | requested if one of them is down, or any rank has another rail
//   no, some rank wants RDMA    | TCP between all ranks; less than requested
//   no, no rank wants RDMA      | TCP
//
// If a pair has no TCP rail in common either, the job fails on all ranks.
//
// A rank wants RDMA if it requires RDMA, has RAILHEAD_TRANSPORT=verbs, or has a rails file and
// chose no transport. On a rank with RAILHEAD_TRANSPORT=tcp no rail works.
//
// The strictest policy of all ranks (RAILHEAD_FALLBACK) decides what happens if the job gets less
// RDMA than requested. With RAILHEAD_REQUIRE_RDMA=1 on any rank, TCP instead of RDMA fails the job
// under every policy:
//
//   policy | less RDMA than requested
//   -------+-----------------------------------------------------------------------------------
//   fail   | the job fails on all ranks, with the reason
//   warn   | degraded: every rank logs the reason; it is in rhCommGetInfo and on the metrics page
//   allow  | degraded, without a warning in the log
//
// The policy applies to the start of each communicator; rails::Peer handles rails lost later
// (rails/peer.h). If ranks fail to set up shared memory that they could have, the communicator is
// degraded, too; this does not fail the job.
//
// Traffic class and service level (RAILHEAD_IB_TC, RAILHEAD_IB_SL) select the queue of a packet in
// each switch, and whether that queue drops packets. They must be equal on all ranks: otherwise a
// connection could be lossless in one direction and congested in the other, and slow without a
// visible cause. If they differ, a job over verbs fails on all ranks.
//
// Fields that programs set for a communicator (rhConfig_t) must be equal on all ranks, too, as
// there is no rule to choose between two values. If they differ, the job fails on all ranks.
//
// Rails of TCP are the interfaces that each rank lists (RAILHEAD_SOCKET_IFNAME). Rail i of one rank
// connects to rail i of another, so a job over TCP fails on all ranks if the numbers of interfaces
// differ. An interface that exists on no rank that lists it is an error in the settings.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_DECISION_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_DECISION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/comm/setup/cores.h"
#include "runtime/comm/setup/cpu_limit.h"
#include "runtime/config/env.h"
#include "runtime/transport/tcp/frame_protection.h"

namespace railhead::comm {

// One RDMA rail of one rank.
struct RailReport {
  int rail = 0;
  std::string device;
  std::string trouble;         // why it cannot be opened; "" if it can
  std::string rate = "";       // of its port, as in sysfs; "" if unknown
  int mtu = 0;                 // in force, in bytes; 0 if unknown
  std::string unreached = "";  // a rank to which it has no connection, and why; "" if there is none

  bool operator==(const RailReport&) const = default;
};

// One TCP rail of one rank; its number is its place in the list.
struct TcpReport {
  std::string interface;
  std::string trouble;   // why it cannot be opened; "" if it can
  bool unknown = false;  // there is no such interface, and there was none before

  bool operator==(const TcpReport&) const = default;
};

// Maximum size of RankReport::rejoin_address, in bytes.
inline constexpr size_t kRejoinAddressLimit = 18;

// Rails over which a rank has connected with each rank of a group.
struct Met {
  bool tcp = false;
  std::vector<int> rails;  // over verbs, ascending

  bool operator==(const Met&) const = default;
};

// Report of one rank: its settings and its resources.
struct RankReport {
  std::string name;  // "rank 2 (pod a on node b)"
  config::TransportChoice choice = config::TransportChoice::kAuto;
  bool require_rdma = false;
  config::Fallback fallback = config::Fallback::kWarn;
  bool has_rails_file = false;
  std::string trouble;  // why its rails are unknown; "" if they are known or not needed
  std::vector<RailReport> rails;
  std::string cut_off;         // a rank to which no RDMA rail has a connection, and why; "" if none
  std::string place;           // ranks with equal values can share memory; "": cannot share
  std::string shm_trouble;     // why it cannot share memory in spite of that; "" if it can
  Cores cores;                 // cores that it may run on
  CpuLimit cpu;                // limit of CPU time on these
  std::string algorithms;      // RAILHEAD_ALGO
  std::string rejoin_address;  // where it listens for ranks that meet again:
                               // bootstrap::EncodePlace's, or ""
  std::vector<TcpReport> tcp = {{}};  // interfaces that it would use for TCP
  int ib_traffic_class = 0;
  int ib_service_level = 0;
  config::Fields configured;  // fields set by its program that must be equal on all ranks
  config::FrameWish frames = config::FrameWish::kPlain;  // RAILHEAD_AUTH
  bool has_aes = false;                                  // transport::HasAes256Gcm()
  // Rails over which it has connected with each of the other ranks, in another communicator.
  Met met;

  bool operator==(const RankReport&) const = default;
};

struct Decision {
  bool shm = false;  // shared memory only
  // Ranks that share memory, by place, in ascending order. One place of all ranks if shm; otherwise
  // several places, at least one with two ranks, or an empty list.
  std::vector<std::vector<int>> places;
  // The rank and setting that prevent shared memory within places; "" if they share it, failed to
  // set it up, or no place has two ranks.
  std::string flat_reason;
  bool crowded = false;  // in some place, not every rank has its own core
  // All pairs of ranks have connected over these rails in another communicator, so they connect at
  // their first message (neighbours.h).
  bool all_met = false;
  bool verbs = false;
  std::vector<int> rails;       // if verbs: rails of all ranks, ascending; some may be down
  std::string degraded_reason;  // "" if the job got what it requested
  // The job's policy; with kAllow the reason is not logged as a warning.
  config::Fallback fallback = config::Fallback::kWarn;
  // Protection of TCP frames: the strictest request, with the fastest cipher that all ranks have.
  transport::FrameProtection protection = transport::FrameProtection::kNone;

  bool operator==(const Decision&) const = default;
};

// Returns FailedPrecondition, with rank and cause, if the job must not run this way.
absl::StatusOr<Decision> Decide(absl::Span<const RankReport> reports);

// Returns a number for each rank, equal for ranks of one place.
std::vector<int> PlaceNumbers(absl::Span<const RankReport> reports);

// Encoding for the exchange between ranks.
std::string Encode(const RankReport& report);
absl::StatusOr<RankReport> ParseReport(absl::string_view bytes);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_DECISION_H_
