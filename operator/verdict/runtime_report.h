// SPDX-License-Identifier: Apache-2.0
//
// Report of a pod's runtime about itself. Values only.
#ifndef RAILHEAD_OPERATOR_VERDICT_RUNTIME_REPORT_H_
#define RAILHEAD_OPERATOR_VERDICT_RUNTIME_REPORT_H_

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/shared_list.h"

namespace railhead::op::verdict {

// Words listed here are those known today; a newer runtime may send others.

// An RDMA rail assigned to a rank, as found at the rank's start.
struct GivenRail {
  int rail = 0;
  std::string device;
  std::string link_layer;  // "InfiniBand" or "Ethernet"; empty if unknown
  std::string rate;        // as in sysfs; empty if unknown
  int mtu = 0;             // bytes; 0 if unknown
  std::string trouble;     // why it is unusable; empty if usable
  std::string cause;       // "device_node", "port", "memlock" or "other"; empty if usable

  bool operator==(const GivenRail&) const = default;
  // Arbitrary order, to find equal values.
  auto Key() const { return std::tie(rail, device, link_layer, rate, mtu, trouble, cause); }
  bool operator<(const GivenRail& other) const { return Key() < other.Key(); }
};

// A rail in use.
struct UsedRail {
  int rail = 0;
  std::string device;
  std::string transport;  // "verbs", "tcp" or "shm"
  bool up = true;         // currently; all links to its peers are up
  int peers = 0;          // connected ranks; 0 if unknown
  int lost_peers = 0;     // peers whose link is down

  bool operator==(const UsedRail&) const = default;
  auto Key() const { return std::tie(rail, device, transport, up, peers, lost_peers); }
  bool operator<(const UsedRail& other) const { return Key() < other.Key(); }
};

// State that the rank found at its start.
struct RankStart {
  int world_size = 1;
  std::string transport;  // in use: "verbs", "tcp" or "shm"
  std::string requested;  // "auto", "verbs", "tcp" or "shm"
  std::string fallback;   // for the whole job: "fail", "warn" or "allow"
  std::string trouble;    // why it has no RDMA rails; empty if it has, or RDMA was not requested
  std::string pod;        // as the runtime reports; empty if unknown
  // Why any process that knows the job's name can join it; empty if not so, if intended, or for an
  // old runtime.
  std::string unauthenticated = {};

  bool operator==(const RankStart&) const = default;
};

struct RankReport {
  std::string job;
  int rank = 0;
  std::optional<RankStart> start;  // nullopt: no communicator, or an old runtime
  std::string degraded;            // why the job has less than requested; empty if not so
  SharedList<GivenRail> given;     // by rail
  SharedList<UsedRail> used;       // by rail
  // Bytes; nullopt if not reported. The limit may be infinite.
  std::optional<double> memlock_limit;   // that the process may pin
  std::optional<double> memlock_wanted;  // that its links want to pin
  std::optional<double> memlock_least;   // minimum without which some links fail
  std::optional<double> shared_memory;   // size of /dev/shm

  bool operator==(const RankReport&) const = default;
};

// All ranks of one page, that is of one process; usually one.
struct RuntimeReport {
  std::vector<RankReport> ranks;  // by job and rank, which several processes may have

  bool operator==(const RuntimeReport&) const = default;
};

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_RUNTIME_REPORT_H_
