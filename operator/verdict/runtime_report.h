// SPDX-License-Identifier: Apache-2.0
//
// What a pod's runtime says of itself. Values only.
#ifndef RAILHEAD_OPERATOR_VERDICT_RUNTIME_REPORT_H_
#define RAILHEAD_OPERATOR_VERDICT_RUNTIME_REPORT_H_

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "operator/verdict/shared_list.h"

namespace railhead::op::verdict {

// The words are those that are known today; a newer runtime may say others.

// An RDMA rail that a rank was given, as it was when the rank started.
struct GivenRail {
  int rail = 0;
  std::string device;
  std::string link_layer;  // "InfiniBand" or "Ethernet"; empty if unknown
  std::string rate;        // as sysfs words it; empty if unknown
  int mtu = 0;             // bytes; 0 if unknown
  std::string trouble;     // why it cannot be used; empty if it can
  std::string cause;       // "device_node", "port", "memlock" or "other"; empty without trouble

  bool operator==(const GivenRail&) const = default;
  // Any order will do, to find those that are alike.
  auto Key() const { return std::tie(rail, device, link_layer, rate, mtu, trouble, cause); }
  bool operator<(const GivenRail& other) const { return Key() < other.Key(); }
};

// A rail in use.
struct UsedRail {
  int rail = 0;
  std::string device;
  std::string transport;  // "verbs", "tcp" or "shm"
  bool up = true;         // at this moment; all links to its peers are
  int peers = 0;          // ranks that it is linked to; 0 if unknown
  int lost_peers = 0;     // those of them whose link is lost

  bool operator==(const UsedRail&) const = default;
  auto Key() const { return std::tie(rail, device, transport, up, peers, lost_peers); }
  bool operator<(const UsedRail& other) const { return Key() < other.Key(); }
};

// What the rank found when it started.
struct RankStart {
  int world_size = 1;
  std::string transport;  // in use: "verbs", "tcp" or "shm"
  std::string requested;  // "auto", "verbs", "tcp" or "shm"
  std::string fallback;   // of the whole job: "fail", "warn" or "allow"
  std::string trouble;    // why it has no RDMA rails to look at; empty if it has, or nobody asked
  std::string pod;        // by the runtime's own word; empty if it does not know
  // Why any process that knows the name of the job can join it; empty if none can, it was meant so,
  // or it is an old runtime.
  std::string unauthenticated = {};

  bool operator==(const RankStart&) const = default;
};

struct RankReport {
  std::string job;
  int rank = 0;
  std::optional<RankStart> start;  // nothing when its communicator is gone, or it is an old runtime
  std::string degraded;            // why the job has less than it asked for; empty if it has not
  SharedList<GivenRail> given;     // by rail
  SharedList<UsedRail> used;       // by rail
  // Bytes, nothing if not told; the limit may be infinite.
  std::optional<double> memlock_limit;   // that the process may pin
  std::optional<double> memlock_wanted;  // that its links would like to pin
  std::optional<double> memlock_least;   // with less some of them do not work
  std::optional<double> shared_memory;   // the size of /dev/shm

  bool operator==(const RankReport&) const = default;
};

// All ranks of one page: of one process, which is mostly one rank.
struct RuntimeReport {
  std::vector<RankReport> ranks;  // by job and rank

  bool operator==(const RuntimeReport&) const = default;
};

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_RUNTIME_REPORT_H_
