// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/findings.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/preflight/ping.h"

namespace railhead::preflight {
namespace {

// Maximum number of ranks named in a finding, the rest are counted; scripts get them all.
constexpr size_t kMostNames = 4;
// Jumbo frames carry RDMA's MTUs of 2048 and 4096; others only 1024.
constexpr int kSmallMtu = 1024;
// So many of a rail's pairs, or ranks with several, have lines of their own.
constexpr int kMostLines = 8;
// A pair that takes longer than this multiple of the median is named.
constexpr double kSlow = 3;

constexpr const char* kVerbs = "verbs";

// The checks.
constexpr char kTransport[] = "transport";
constexpr char kMemlock[] = "memlock";
constexpr char kPort[] = "port";
constexpr char kRate[] = "rate";
constexpr char kMtu[] = "mtu";
constexpr char kGid[] = "gid";
constexpr char kAttachment[] = "attachment";
constexpr char kInterface[] = "interface";
constexpr char kDeviceNode[] = "device_node";
constexpr char kFlowControl[] = "flow_control";
constexpr char kCounters[] = "counters";
constexpr char kPing[] = "ping";
constexpr char kSharp[] = "sharp";

constexpr const char* kFixRate =
    "the slowest port sets the pace of all: reseat or replace its cable, and check the speed "
    "that its switch port is set to";
constexpr const char* kFixMtu =
    "give the rail's interfaces and switch ports the same MTU on all nodes: the smallest one is "
    "used";
constexpr const char* kFixSmallMtu =
    "raise the MTU of the interface and of its switch port (4200 bytes or more, commonly 9000)";
constexpr const char* kFixRoceV1 =
    "routers do not forward RoCE v1, and switches do not spread it over links: give the rail's "
    "interface an IP address, and let the adapter use RoCE v2";
constexpr const char* kFixMemlock =
    "set LimitMEMLOCK=infinity for the node's container runtime service, or devicePlugin.memlock "
    "in Railhead's chart (the capability IPC_LOCK helps only processes that run as root)";
constexpr const char* kFixDeviceNode =
    "request rdma/hca in the pod, which adds the device node, and run the pod as a user that may "
    "read and write it";
constexpr const char* kFixPort =
    "check the cable, the switch port, that the network interface is up, and on InfiniBand that a "
    "subnet manager runs";
constexpr const char* kFixRail = "repair it: until then this rank does not use the rail";
constexpr const char* kFixMissingRail =
    "give all pods of the job the same number of rdma/hca, on nodes with this rail";
constexpr const char* kFixDegraded =
    "remove this cause, or set RAILHEAD_TRANSPORT=tcp on all ranks if TCP is intended";
constexpr const char* kFixAttachment =
    "attach the pod to the NIC of its HCA: make each rail a resource with its own attachment "
    "(perRail: true), or pass the NIC that the kubelet chose to the CNI plugin (deviceIds: "
    "pciAddress)";
constexpr const char* kFixLeavesElsewhere =
    "give each rail a separate subnet, or route by source: `ip rule add from ADDRESS table N; ip "
    "route add SUBNET dev INTERFACE src ADDRESS table N`, with net.ipv4.conf.all.arp_ignore=1, "
    "arp_announce=2 and rp_filter=2";
constexpr const char* kFixNoEcn =
    "enable ECN for the priority of the rail's traffic, on the NIC and on every switch port";
constexpr const char* kFixUnseenFlowControl =
    "check on the node: `mlnx_qos -i INTERFACE` or `dcb pfc show dev INTERFACE`; RoCE needs PFC or "
    "ECN for its priority there and on every switch port";
constexpr const char* kFixCounters =
    "packets are lost, marked or corrupt with almost no load: check the cable, PFC and ECN "
    "of the traffic class, and other users of the port";
constexpr const char* kFixNoAnswer =
    "check that the rail's network connects the nodes: the same subnet or a route, the "
    "same VLAN, and switch ports that are up";
constexpr const char* kFixPath =
    "something on the path drops large packets: give all interfaces, switch ports and tunnels of "
    "the rail one MTU, and check it with `ping -M do -s SIZE ADDRESS`, where SIZE is the "
    "interface's MTU less 28 (48 with IPv6)";
constexpr const char* kFixSlow =
    "check for a busy core on that node, and for a long or faulty path: cable, switch port, "
    "cabling to the wrong leaf";

constexpr const char* kFixSharpDiffers =
    "set NCCL_COLLNET_ENABLE to the same value on all ranks of the job";
constexpr const char* kFixNotInfiniBand =
    "SHARP is a feature of InfiniBand's switches: run the job on InfiniBand rails, or set "
    "NCCL_COLLNET_ENABLE=0";
constexpr const char* kFixSharpPlugin =
    "use an image with NVIDIA's SHARP plugin of NCCL (HPC-X has it), and name it in "
    "NCCL_NET_PLUGIN or its directory in LD_LIBRARY_PATH; or set NCCL_COLLNET_ENABLE=0";
constexpr const char* kFixSharpLibrary =
    "use an image with libsharp (HPC-X has it), and name its directory in LD_LIBRARY_PATH";
constexpr const char* kFixNoHello =
    "ask it from a machine with NVIDIA's SHARP package: `sharp_hello -d DEVICE:PORT -v 3`; or see "
    "on the subnet manager's host whether sharp_am runs";

// One rail, as each rank that has it sees it.
struct Seen {
  int rank = 0;
  const RailFacts* facts = nullptr;
};

// Severity, check, rail, observed value and fix.
using Key = std::tuple<Severity, std::string, std::string, std::string, std::string>;

// The findings under construction; equal ones of several ranks become one.
class Findings {
 public:
  explicit Findings(absl::Span<const RankFacts> ranks) : ranks_(ranks) {}

  void Add(Severity severity, absl::string_view check, const rails::RailName* rail,
           const std::vector<int>& about, std::string value, std::string fix = "") {
    Key key = {severity, std::string(check), rail != nullptr ? rails::ToString(*rail) : "", value,
               fix};
    const auto [place, fresh] = places_.try_emplace(std::move(key), all_.size());
    if (fresh) {
      all_.push_back({{severity, std::string(check), "", std::move(value), std::move(fix)},
                      rail != nullptr ? std::optional(*rail) : std::nullopt,
                      {}});
    }
    std::vector<int>& to = all_[place->second].ranks;
    to.insert(to.end(), about.begin(), about.end());
  }

  void Add(Severity severity, absl::string_view check, const Seen& seen, std::string value,
           std::string fix = "") {
    Add(severity, check, &seen.facts->name, {seen.rank}, std::move(value), std::move(fix));
  }

  std::vector<RankFinding> Take() {
    for (RankFinding& finding : all_) finding.object = Where(finding);
    return std::move(all_);
  }

  std::string Names(const std::vector<int>& about) const {
    std::vector<std::string> names;
    for (const int rank : about) {
      if (names.size() == kMostNames) break;
      const std::string& name = ranks_[static_cast<size_t>(rank)].name;
      names.push_back(name.empty() ? absl::StrCat("rank ", rank) : name);
    }
    std::string text = absl::StrJoin(names, ", ");
    if (about.size() > names.size()) {
      absl::StrAppend(&text, " and ", about.size() - names.size(), " more");
    }
    return text;
  }

 private:
  std::string Where(const RankFinding& finding) const {
    const bool all = ranks_.size() > 1 && finding.ranks.size() == ranks_.size();
    std::string names = all ? absl::StrCat("all ", ranks_.size(), " ranks") : Names(finding.ranks);
    return finding.rail.has_value() ? absl::StrCat(rails::ToString(*finding.rail), ": ", names)
                                    : names;
  }

  absl::Span<const RankFacts> ranks_;
  std::map<Key, size_t> places_;
  std::vector<RankFinding> all_;
};

// Returns the most frequent value, the first of equally frequent ones; nullopt if all are unknown.
template <class Value>
std::optional<Value> Usual(absl::Span<const Seen> seen,
                           absl::FunctionRef<std::optional<Value>(const RailFacts&)> of) {
  std::map<Value, int> counts;
  std::optional<Value> usual;
  for (const Seen& one : seen) {
    const std::optional<Value> value = of(*one.facts);
    if (value.has_value()) ++counts[*value];
  }
  int most = 0;
  for (const Seen& one : seen) {
    const std::optional<Value> value = of(*one.facts);
    if (!value.has_value() || counts[*value] <= most) continue;
    most = counts[*value];
    usual = value;
  }
  return usual;
}

std::optional<std::string> RateOf(const RailFacts& rail) {
  return rail.rate.empty() ? std::nullopt : std::optional<std::string>(rail.rate);
}
std::optional<int> MtuOf(const RailFacts& rail) {
  return rail.port.has_value() && rail.port->mtu > 0 ? std::optional<int>(rail.port->mtu)
                                                     : std::nullopt;
}

std::string Bytes(uint64_t bytes) {
  const uint64_t kib = bytes / 1024;
  return kib >= 10240 ? absl::StrCat(kib / 1024, " MiB") : absl::StrCat(kib, " KiB");
}

// Returns how to read what this pod does not show of a port.
std::string FixUnread(const RailFacts& rail) {
  if (rail.name.transport == kVerbs) {
    return absl::StrCat("read it on the node: ibstat ", rail.name.device);
  }
  return absl::StrCat(
      "nothing to do for a virtual interface; of a NIC, read it on the node: ethtool ",
      rail.name.device);
}

void CheckPort(const Seen& seen, Findings& findings) {
  const RailFacts& rail = *seen.facts;
  if (!rail.trouble.empty()) findings.Add(Severity::kFail, kPort, seen, rail.trouble, kFixRail);
  if (rail.state.empty()) {
    if (rail.trouble.empty()) {
      findings.Add(Severity::kNote, kPort, seen, "its state is not readable here", FixUnread(rail));
    }
    return;
  }
  const std::string state =
      rail.physical.empty() ? rail.state : absl::StrCat(rail.state, ", ", rail.physical);
  if (rail.state == "ACTIVE" || rail.state == "up") {
    findings.Add(Severity::kOk, kPort, seen, state);
  } else if (rail.trouble.empty()) {
    findings.Add(Severity::kFail, kPort, seen, state, kFixPort);
  }
}

void CheckRate(const Seen& seen, const std::optional<std::string>& usual, Findings& findings) {
  const RailFacts& rail = *seen.facts;
  if (rail.rate.empty()) {
    findings.Add(Severity::kNote, kRate, seen, "not readable here", FixUnread(rail));
  } else if (rail.rate == usual) {
    findings.Add(Severity::kOk, kRate, seen, rail.rate);
  } else {
    findings.Add(Severity::kWarn, kRate, seen, absl::StrCat(rail.rate, ", others have ", *usual),
                 kFixRate);
  }
}

void CheckMtu(const Seen& seen, const std::optional<int>& usual, Findings& findings) {
  const RailFacts& rail = *seen.facts;
  const std::optional<int> mtu = MtuOf(rail);
  if (!mtu.has_value()) return;
  if (mtu != usual) {
    findings.Add(Severity::kWarn, kMtu, seen, absl::StrCat(*mtu, " bytes, others have ", *usual),
                 kFixMtu);
  } else if (*mtu <= kSmallMtu && rail.port->largest_mtu > kSmallMtu &&
             rail.name.transport == kVerbs) {
    findings.Add(Severity::kWarn, kMtu, seen,
                 absl::StrCat(*mtu, " bytes, but the port supports ", rail.port->largest_mtu),
                 kFixSmallMtu);
  } else {
    findings.Add(Severity::kOk, kMtu, seen, absl::StrCat(*mtu, " bytes"));
  }
}

// Addresses are all different, so ranks are grouped by the kind and the index, which they have in
// common.
void CheckGids(absl::Span<const Seen> seen, Findings& findings) {
  std::map<std::pair<std::string, uint32_t>, std::vector<Seen>> kinds;
  for (const Seen& one : seen) {
    if (!one.facts->port.has_value()) continue;
    kinds[{one.facts->port->gid_kind, one.facts->port->gid_index}].push_back(one);
  }
  for (const auto& [kind, members] : kinds) {
    const RailFacts& first = *members.front().facts;
    if (kind.first.empty()) {
      for (const Seen& one : members) {
        findings.Add(
            Severity::kNote, kGid, one, "none needed",
            "nothing to do within one InfiniBand subnet, whose ports are addressed by LID");
      }
      continue;
    }
    std::vector<std::string> addresses;
    std::vector<int> about;
    for (const Seen& one : members) {
      about.push_back(one.rank);
      if (addresses.size() < kMostNames) addresses.push_back(one.facts->port->gid_address);
    }
    const size_t more = members.size() - addresses.size();
    const bool old = first.port->roce_v1;
    findings.Add(
        old ? Severity::kWarn : Severity::kOk, kGid, &first.name, about,
        absl::StrCat(kind.first, " at index ", kind.second, ": ", absl::StrJoin(addresses, ", "),
                     more > 0 ? absl::StrCat(" and ", more, " more") : ""),
        old ? kFixRoceV1 : "");
  }
}

// Without an attachment a rail uses the node's address, which is right for plain pods: those may
// have an attachment for other uses.
void CheckAttachment(const Seen& seen, Findings& findings) {
  const RailFacts& rail = *seen.facts;
  if (rail.attached_elsewhere.empty()) return;
  findings.Add(rail.has_node_gid ? Severity::kNote : Severity::kWarn, kAttachment, seen,
               absl::StrCat("this rail has no address of the pod: ", rail.attached_elsewhere,
                            ", which the pod did not get",
                            rail.has_node_gid ? "; connections start from the node's address" : ""),
               kFixAttachment);
}

void CheckInterface(const Seen& seen, Findings& findings) {
  const RailFacts& rail = *seen.facts;
  if (rail.leaves_elsewhere.empty()) return;
  findings.Add(Severity::kWarn, kInterface, seen, rail.leaves_elsewhere, kFixLeavesElsewhere);
}

void CheckDeviceNode(const Seen& seen, Findings& findings) {
  const RailFacts& rail = *seen.facts;
  if (!rail.device_node_trouble.empty()) {
    findings.Add(Severity::kFail, kDeviceNode, seen, rail.device_node_trouble, kFixDeviceNode);
  } else if (rail.device_node.empty()) {
    findings.Add(
        Severity::kNote, kDeviceNode, seen, "the rails file does not name it",
        "check in the pod that it may read and write its device node: ls -l /dev/infiniband");
  } else {
    findings.Add(Severity::kOk, kDeviceNode, seen,
                 absl::StrCat(rail.device_node, " can be read and written"));
  }
}

void CheckFlowControl(const Seen& seen, Findings& findings) {
  const RailFacts& rail = *seen.facts;
  if (rail.link_layer == "InfiniBand") {
    findings.Add(Severity::kNote, kFlowControl, seen, "built into InfiniBand",
                 "nothing to do: credits of the links prevent loss");
  } else if (rail.ecn.empty()) {
    findings.Add(Severity::kNote, kFlowControl, seen, "PFC and ECN are not readable here",
                 kFixUnseenFlowControl);
  } else if (rail.ecn == "off") {
    findings.Add(Severity::kWarn, kFlowControl, seen, "ECN is off; PFC is not readable here",
                 kFixNoEcn);
  } else {
    findings.Add(Severity::kOk, kFlowControl, seen,
                 absl::StrCat("ECN is ", rail.ecn, "; PFC is not readable here"));
  }
}

void CheckCounters(const Seen& seen, Findings& findings) {
  const RailFacts& rail = *seen.facts;
  if (!rail.counted) {
    findings.Add(Severity::kNote, kCounters, seen, "not readable here",
                 absl::StrCat("read them in the node agent's metrics: railhead_port_*{device=\"",
                              rail.name.device, "\"}"));
    return;
  }
  if (rail.growth.empty()) {
    findings.Add(Severity::kOk, kCounters, seen, "no counter increased during the check");
    return;
  }
  findings.Add(Severity::kWarn, kCounters, seen,
               absl::StrCat(absl::StrJoin(rail.growth, ", ",
                                          [](std::string* out, const Growth& growth) {
                                            absl::StrAppend(out, growth.counter, " by ", growth.by);
                                          }),
                            " during the check, counted by the port for all its users"),
               kFixCounters);
}

void CheckMemlock(int rank, const RankFacts& facts, Findings& findings) {
  if (facts.registers == 0) return;
  if (facts.memlock == kUnlimited) {
    findings.Add(Severity::kOk, kMemlock, nullptr, {rank}, "unlimited");
    return;
  }
  const std::string limit = absl::StrCat("RLIMIT_MEMLOCK is ", Bytes(facts.memlock));
  if (facts.memlock >= facts.registers) {
    findings.Add(Severity::kOk, kMemlock, nullptr, {rank},
                 absl::StrCat(limit, ", enough for the ", Bytes(facts.registers), " needed"));
  } else if (facts.memlock >= facts.least_bytes) {
    findings.Add(Severity::kWarn, kMemlock, nullptr, {rank},
                 absl::StrCat(limit, ", but the rails would use ", Bytes(facts.registers),
                              ": they use less and are slower"),
                 kFixMemlock);
  } else {
    findings.Add(Severity::kFail, kMemlock, nullptr, {rank},
                 absl::StrCat(limit, ", but the rails need at least ", Bytes(facts.least_bytes),
                              " and would use ", Bytes(facts.registers)),
                 kFixMemlock);
  }
}

// The rails by transport and number, RDMA's first.
std::map<std::pair<bool, int>, std::vector<Seen>> Rails(absl::Span<const RankFacts> ranks) {
  std::map<std::pair<bool, int>, std::vector<Seen>> rails;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const RailFacts& rail : ranks[rank].rails) {
      rails[{rail.name.transport != kVerbs, rail.name.rail}].push_back(
          {static_cast<int>(rank), &rail});
    }
  }
  return rails;
}

void CheckRail(bool tcp, absl::Span<const Seen> seen, size_t world, Findings& findings) {
  for (const Seen& one : seen) CheckPort(one, findings);
  if (!tcp) {
    std::vector<int> without;
    auto next = seen.begin();
    for (int rank = 0; rank < static_cast<int>(world); ++rank) {
      if (next != seen.end() && next->rank == rank) {
        ++next;
      } else {
        without.push_back(rank);
      }
    }
    if (!without.empty()) {
      findings.Add(Severity::kFail, kPort, &seen.front().facts->name, without,
                   "others were given this rail", kFixMissingRail);
    }
  }
  const auto rate = Usual<std::string>(seen, RateOf);
  for (const Seen& one : seen) CheckRate(one, rate, findings);
  const auto mtu = Usual<int>(seen, MtuOf);
  for (const Seen& one : seen) CheckMtu(one, mtu, findings);
  for (const Seen& one : seen) CheckInterface(one, findings);
  if (tcp) return;
  CheckGids(seen, findings);
  for (const Seen& one : seen) CheckAttachment(one, findings);
  for (const Seen& one : seen) CheckDeviceNode(one, findings);
  for (const Seen& one : seen) CheckFlowControl(one, findings);
  for (const Seen& one : seen) CheckCounters(one, findings);
}

// One pair's round trips over a rail.
struct Pair {
  int low = 0;
  int high = 0;
  const PingFacts* ping = nullptr;
};

std::string Time(double nanoseconds) { return absl::StrFormat("%.1f us", nanoseconds / 1000); }

double Median(std::vector<uint32_t> times) {
  if (times.empty()) return 0;
  // The lower of two, so that the higher one shows.
  const auto middle = times.begin() + static_cast<ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Adds a finding for each pair; where one rank is in several of them, one for that rank; and for
// those that are too many for people, one for all.
void Blame(std::vector<Pair> pairs, Severity severity, absl::string_view check,
           const rails::RailName& rail, absl::FunctionRef<std::string(const Pair&)> what,
           const char* fix, Findings& findings) {
  for (int line = 0; !pairs.empty(); ++line) {
    if (line == kMostLines) {
      std::set<int> about;
      for (const Pair& pair : pairs) about.insert({pair.low, pair.high});
      findings.Add(severity, check, &rail, {about.begin(), about.end()},
                   absl::StrCat(pairs.size(),
                                " more pairs of these ranks, the first: ", what(pairs.front())),
                   fix);
      return;
    }
    std::map<int, int> counts;
    for (const Pair& pair : pairs) {
      ++counts[pair.low];
      ++counts[pair.high];
    }
    const auto most =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    const int culprit = most->first;
    const bool alone = most->second == 1;
    std::vector<int> others;
    std::string example;
    std::vector<Pair> rest;
    for (const Pair& pair : pairs) {
      if ((pair.low == culprit || pair.high == culprit) && (!alone || others.empty())) {
        if (others.empty()) example = what(pair);
        others.push_back(pair.low == culprit ? pair.high : pair.low);
      } else {
        rest.push_back(pair);
      }
    }
    const std::string with = absl::StrCat(
        "with ", findings.Names(others), ": ", example,
        others.size() > 1 ? absl::StrCat(" with the first of these ", others.size()) : "");
    findings.Add(severity, check, &rail, {culprit}, with, fix);
    pairs = std::move(rest);
  }
}

// Returns the rank's facts about a rail of the job; null if it has none.
const RailFacts* FactsOn(const RankFacts& rank, const rails::RailName& name) {
  for (const RailFacts& facts : rank.rails) {
    if (facts.name.rail == name.rail && facts.name.transport == name.transport) return &facts;
  }
  return nullptr;
}

// Returns "9000", or "?" if it is unknown.
std::string MtuText(const RankFacts& rank, const rails::RailName& name) {
  const RailFacts* const facts = FactsOn(rank, name);
  const std::optional<int> mtu = facts != nullptr ? MtuOf(*facts) : std::nullopt;
  return mtu.has_value() ? absl::StrCat(*mtu) : "?";
}

void CheckPings(const Job& job, absl::Span<const RankFacts> ranks, Findings& findings) {
  std::map<int, std::vector<Pair>> by_rail;
  std::vector<uint32_t> times;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const PingFacts& ping : ranks[rank].pings) {
      if (ping.peer < 0 || static_cast<size_t>(ping.peer) >= ranks.size()) continue;
      by_rail[ping.rail].push_back({static_cast<int>(rank), ping.peer, &ping});
      if (ping.trouble.empty()) times.push_back(ping.nanoseconds);
    }
  }
  // Over all rails, so that a slow rail shows as well as a slow pair.
  const double usual = Median(times);
  for (const auto& [number, pairs] : by_rail) {
    rails::RailName rail = {number, "", 0, job.transport};
    if (const RailFacts* const facts = FactsOn(ranks.front(), rail); facts != nullptr) {
      rail = facts->name;
    }
    // One that a rank cannot open is a finding about that rank.
    const auto closed = [&](int rank) {
      const RailFacts* const facts = FactsOn(ranks[static_cast<size_t>(rank)], rail);
      return facts != nullptr && !facts->trouble.empty();
    };
    std::vector<Pair> mute;
    std::vector<Pair> narrow;
    std::vector<Pair> slow;
    std::vector<uint32_t> of_rail;
    std::set<int> answered;
    for (const Pair& pair : pairs) {
      if (!pair.ping->trouble.empty()) {
        if (!closed(pair.low) && !closed(pair.high)) mute.push_back(pair);
        continue;
      }
      if (!pair.ping->large_trouble.empty()) narrow.push_back(pair);
      of_rail.push_back(pair.ping->nanoseconds);
      answered.insert({pair.low, pair.high});
      if (pair.ping->nanoseconds > kSlow * usual) slow.push_back(pair);
    }
    if (!of_rail.empty()) {
      findings.Add(
          Severity::kOk, kPing, &rail, {answered.begin(), answered.end()},
          absl::StrCat("round trip of ", Time(Median(of_rail)), " (median of ", of_rail.size(),
                       of_rail.size() == 1 ? " pair" : " pairs", "; slowest: ",
                       Time(*std::max_element(of_rail.begin(), of_rail.end())), ")"));
    }
    Blame(
        std::move(mute), Severity::kFail, kPing, rail,
        [](const Pair& pair) { return pair.ping->trouble; }, kFixNoAnswer, findings);
    Blame(
        std::move(narrow), Severity::kFail, kMtu, rail,
        [&](const Pair& pair) {
          return absl::StrCat("frames of ", kSmallPing, " bytes pass, frames of ",
                              pair.ping->large_bytes, " bytes do not (", pair.ping->large_trouble,
                              "), with interfaces of MTU ",
                              MtuText(ranks[static_cast<size_t>(pair.low)], rail), " and ",
                              MtuText(ranks[static_cast<size_t>(pair.high)], rail));
        },
        kFixPath, findings);
    Blame(
        std::move(slow), Severity::kWarn, kPing, rail,
        [usual](const Pair& pair) {
          return absl::StrFormat("round trip of %s, %.1f times the median of %s",
                                 Time(pair.ping->nanoseconds), pair.ping->nanoseconds / usual,
                                 Time(usual));
        },
        kFixSlow, findings);
  }
}

void CheckTransport(const Job& job, absl::Span<const RankFacts> ranks, Findings& findings) {
  std::vector<int> all(ranks.size());
  std::iota(all.begin(), all.end(), 0);
  if (!job.degraded_reason.empty()) {
    findings.Add(Severity::kFail, kTransport, nullptr, all, job.degraded_reason, kFixDegraded);
  } else {
    findings.Add(Severity::kOk, kTransport, nullptr, all, job.transport);
  }
  if (job.transport != kVerbs) {
    findings.Add(Severity::kNote, kTransport, nullptr, all,
                 "gid, device_node, flow_control, counters and memlock do not apply to rails of "
                 "TCP",
                 "nothing to do if TCP is intended; else set RAILHEAD_TRANSPORT=verbs to check the "
                 "RDMA rails");
  }
  if (ranks.size() < 2) {
    findings.Add(Severity::kNote, kPing, nullptr, all, "a single rank has no peer to ping",
                 "to measure round trips, start it once for each rank, with the same WORLD_SIZE");
  }
}

// Returns whether a path that another rank sent can be in a command.
bool IsPlainPath(absl::string_view path) {
  return absl::StartsWith(path, "/") && std::all_of(path.begin(), path.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  absl::string_view("._+/-").find(c) != absl::string_view::npos;
         });
}

// Checks a rank on which NCCL is to use SHARP. Without it NCCL reduces as usual, so nothing fails.
void CheckSharpOf(int rank, const RankFacts& facts, Findings& findings) {
  const SharpFacts& sharp = facts.sharp;
  const auto warn = [&](std::string observed, const char* fix) {
    findings.Add(Severity::kWarn, kSharp, nullptr, {rank}, std::move(observed), fix);
  };
  const RailFacts* first = nullptr;
  bool all = true;
  for (const RailFacts& rail : facts.rails) {
    if (rail.name.transport != kVerbs) continue;
    if (first == nullptr) first = &rail;
    if (rail.link_layer.empty() || rail.link_layer == "InfiniBand") continue;
    all = false;
    findings.Add(Severity::kWarn, kSharp, Seen{rank, &rail},
                 absl::StrCat("the link layer is ", rail.link_layer), kFixNotInfiniBand);
  }
  if (first == nullptr) warn("has no InfiniBand rail", kFixNotInfiniBand);
  if (sharp.plugin.empty()) {
    warn(absl::StrCat("NCCL's plugin ", sharp.name, " was not found in the library path"),
         kFixSharpPlugin);
  } else if (!sharp.has_collnet) {
    warn(absl::StrCat("NCCL's plugin ", sharp.plugin, " has no CollNet"), kFixSharpPlugin);
  } else {
    findings.Add(Severity::kOk, kSharp, nullptr, {rank},
                 absl::StrCat("NCCL's plugin ", sharp.plugin, " has CollNet"));
  }
  if (sharp.library.empty()) {
    warn("libsharp was not found in the library path", kFixSharpLibrary);
  } else {
    findings.Add(Severity::kOk, kSharp, nullptr, {rank}, sharp.library);
  }
  if (first == nullptr || !all) return;
  findings.Add(Severity::kNote, kSharp, nullptr, {rank}, "sharp_am was not asked",
               IsPlainPath(sharp.hello)
                   ? absl::StrCat("ask it from rank 0's pod: ", sharp.hello, " -d ",
                                  first->name.device, ":", first->name.port, " -v 3")
                   : std::string(kFixNoHello));
}

void CheckSharp(absl::Span<const RankFacts> ranks, Findings& findings) {
  std::vector<int> without;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!ranks[rank].sharp.wanted) without.push_back(static_cast<int>(rank));
  }
  if (without.size() == ranks.size()) return;
  if (!without.empty()) {
    findings.Add(Severity::kWarn, kSharp, nullptr, without,
                 "NCCL_COLLNET_ENABLE is not 1, as it is on other ranks", kFixSharpDiffers);
  }
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].sharp.wanted) CheckSharpOf(static_cast<int>(rank), ranks[rank], findings);
  }
}

}  // namespace

std::vector<RankFinding> FindAll(const Job& job, absl::Span<const RankFacts> ranks) {
  Findings findings(ranks);
  CheckTransport(job, ranks, findings);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    CheckMemlock(static_cast<int>(rank), ranks[rank], findings);
  }
  for (const auto& [key, seen] : Rails(ranks)) {
    CheckRail(key.first, seen, ranks.size(), findings);
  }
  CheckPings(job, ranks, findings);
  CheckSharp(ranks, findings);
  return findings.Take();
}

RankFacts UsualOf(absl::Span<const RankFacts> ranks) {
  RankFacts usual;
  for (const auto& [key, seen] : Rails(ranks)) {
    RailFacts& rail = usual.rails.emplace_back();
    rail.name = seen.front().facts->name;
    rail.rate = Usual<std::string>(seen, RateOf).value_or("");
    const std::optional<int> mtu = Usual<int>(seen, MtuOf);
    if (!mtu.has_value()) continue;
    rail.port.emplace();
    rail.port->mtu = *mtu;
  }
  return usual;
}

std::vector<std::string> WarningsOf(const RankFacts& own, const RankFacts& usual) {
  // The usual value comes first: if there are two, it counts as right.
  constexpr int kOwn = 1;
  const RankFacts ranks[] = {usual, own};
  Findings findings(ranks);
  CheckMemlock(kOwn, own, findings);
  for (const auto& [key, seen] : Rails(ranks)) {
    const auto rate = Usual<std::string>(seen, RateOf);
    const auto mtu = Usual<int>(seen, MtuOf);
    for (const Seen& one : seen) {
      if (one.rank != kOwn) continue;
      CheckRate(one, rate, findings);
      CheckMtu(one, mtu, findings);
      CheckGids({&one, 1}, findings);
      CheckAttachment(one, findings);
      CheckFlowControl(one, findings);
    }
  }
  std::vector<std::string> warnings;
  for (RankFinding& finding : findings.Take()) {
    if (finding.severity != Severity::kWarn) continue;
    finding.object = finding.rail.has_value()
                         ? absl::StrCat(rails::ToString(*finding.rail), ": ", finding.check)
                         : finding.check;
    warnings.push_back(FindingLine(finding));
  }
  return warnings;
}

}  // namespace railhead::preflight
