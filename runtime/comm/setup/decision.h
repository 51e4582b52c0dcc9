// SPDX-License-Identifier: Apache-2.0
//
// Which transport a job uses. Every rank reports what it wanted and what it has; rank 0 decides
// from all reports (agreement.h). Pure.
//
// Ranks that can all share memory do, when none of them requires or chose anything else. Where one
// of them chose shared memory (RAILHEAD_TRANSPORT=shm) and they cannot, the job fails on all ranks.
// Otherwise rails connect them, and those of one place share memory besides, however many each
// place has, if there are several in one and nobody chose a transport (else Decision::flat_reason
// says who did):
//
//   a rail works on every rank | decision
//   ---------------------------+-----------------------------------------------------------------
//   yes                        | verbs, on the rails that work everywhere; less than was given if
//                              | any rank has a rail that is not among them
//   no, somebody wanted RDMA   | TCP between all ranks; less than was given
//   no, nobody wanted RDMA     | TCP
//
// A rank wants RDMA if it requires it, has RAILHEAD_TRANSPORT=verbs, or was given rails (a rails
// file) and left the choice to us. On a rank with RAILHEAD_TRANSPORT=tcp no rail works.
//
// The strictest of all ranks' policies (RAILHEAD_FALLBACK) says what less than was given leads to.
// RAILHEAD_REQUIRE_RDMA=1 on any rank makes TCP in place of RDMA a failure under every policy:
//
//   policy | less RDMA than was given
//   -------+-----------------------------------------------------------------------------------
//   fail   | the job fails on all ranks, with the reason
//   warn   | degraded: the reason is logged by every rank, in rhCommGetInfo and on the metrics page
//   allow  | degraded, but not logged as a warning
//
// That is asked whenever a communicator starts. A rail that is lost later is the rails' affair
// (rails/peer.h). Ranks that could have shared memory, and failed to, are degraded as well; this
// ends no job.
//
// Traffic class and service level (RAILHEAD_IB_TC, RAILHEAD_IB_SL) say which queue of each switch a
// packet waits in, and whether that queue loses packets. They belong to the job: with two values,
// of which nobody knows the right one, a connection would be lossless in one direction and
// congested in the other, and go slow without a reason that anybody sees. So a job over verbs whose
// ranks differ in them fails on all ranks.
//
// What programs set for the communicator (rhConfig_t) is part of the program, and so the same on
// all ranks, or nobody knows which of two is meant: the job fails on all ranks when two differ.
//
// TCP has its own rails, the interfaces that each rank names (RAILHEAD_SOCKET_IFNAME): rail i of
// one rank leads to rail i of another, so a job over TCP fails on all ranks when some name fewer.
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

// One RDMA rail as one rank sees it.
struct RailReport {
  int rail = 0;
  std::string device;
  std::string trouble;    // why it cannot be used; "" if it can
  std::string rate = "";  // of its port, as sysfs words it; "" if unknown
  int mtu = 0;            // in force, in bytes; 0 if unknown

  bool operator==(const RailReport&) const = default;
};

// Of RankReport::rejoin_address, in bytes.
inline constexpr size_t kRejoinAddressLimit = 18;

// What one rank wanted and got.
struct RankReport {
  std::string name;  // "rank 2 (pod a on node b)"
  config::TransportChoice choice = config::TransportChoice::kAuto;
  bool require_rdma = false;
  config::Fallback fallback = config::Fallback::kWarn;
  bool has_rails_file = false;
  std::string trouble;  // why there are no rails to look at; "" if there are, or nobody asked
  std::vector<RailReport> rails;
  std::string place;           // ranks with the same one can share memory; "": not with anybody
  std::string shm_trouble;     // why it cannot, all the same; "" if it can
  Cores cores;                 // that it may run on
  CpuLimit cpu;                // and how much of them
  std::string algorithms;      // RAILHEAD_ALGO
  std::string rejoin_address;  // where it can be met again: bootstrap::EncodePlace's, or ""
  int tcp_rails = 1;           // interfaces that it would use for TCP
  int ib_traffic_class = 0;
  int ib_service_level = 0;
  config::Fields configured;  // what its program has set that all ranks must set alike
  config::FrameWish frames = config::FrameWish::kPlain;  // RAILHEAD_AUTH
  bool has_aes = false;                                  // transport::HasAes256Gcm()

  bool operator==(const RankReport&) const = default;
};

struct Decision {
  bool shm = false;  // and nothing else
  // The ranks that share memory, place by place and in ascending order. A single place of all
  // ranks, if shm; else several, one of which has two ranks at least, or none.
  std::vector<std::vector<int>> places;
  // Who chose that ranks of a place share no memory; "" if they do, have failed to, or are alone.
  std::string flat_reason;
  bool crowded = false;  // in some place not every rank has a core for itself
  bool verbs = false;
  std::vector<int> rails;       // the rails in use, ascending, if verbs
  std::string degraded_reason;  // "" when the job got what it wanted
  // The job's; with kAllow nobody is to be warned of the reason.
  config::Fallback fallback = config::Fallback::kWarn;
  // Of TCP frames: the strictest wish, with the fastest cipher that all ranks have.
  transport::FrameProtection protection = transport::FrameProtection::kNone;

  bool operator==(const Decision&) const = default;
};

// FailedPrecondition, with the culprit and the cause, if the job must not run like this.
absl::StatusOr<Decision> Decide(absl::Span<const RankReport> reports);

// Numbers by rank, equal for ranks of one place.
std::vector<int> PlaceNumbers(absl::Span<const RankReport> reports);

// For the exchange between ranks.
std::string Encode(const RankReport& report);
absl::StatusOr<RankReport> ParseReport(absl::string_view bytes);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_DECISION_H_
