// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/reasons.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable_text.h"

namespace railhead::op::verdict {
namespace {

constexpr Severity kInfo = Severity::kInfo;
constexpr Severity kWarning = Severity::kWarning;

constexpr ReasonRow kReasons[] = {
    {Reason::kResourceUnknown, kWarning, "RdmaResourceUnknown", "no node offers $0",
     "correct the resource's name, or see that the node agents run and that their configuration "
     "has "
     "this resource"},
    {Reason::kTooManyDevices, kWarning, "RdmaTooManyDevices",
     "asks for $1 of $0, and no node has more than $2", "ask for $2 at most"},
    {Reason::kRailsDownAtNodes, kWarning, "RdmaRailsDownAtNodes",
     "asks for $1 of $0, which a node would have if its rails worked: $2",
     "repair the cable, NIC or switch port; kubectl describe node says more"},
    {Reason::kDevicesInUse, kInfo, "RdmaDevicesInUse",
     "waits for $1 of $0: on nodes that have as many, they are in use or the pod may not go there",
     "wait until pods end, or see what the scheduler says: kubectl describe pod"},
    {Reason::kAdmissionMissed, kWarning, "RdmaAdmissionMissed",
     "asks for RDMA and did not pass Railhead's operator, so it has none of the fabric's "
     "environment",
     "see that the operator is ready, and create the pod again"},
    {Reason::kProfileOutdated, kInfo, "RailProfileOutdated",
     "has the environment of RailProfile $0 as it was (generation $1, now $2)",
     "create the pod again to have it as it is now"},
    {Reason::kNotDone, kWarning, "RailheadNotDone", "$0: $1", "$2"},
    {Reason::kPolicyOverridden, kWarning, "RdmaPolicyOverridden",
     "sets RAILHEAD_FALLBACK=$0 where RailProfile $1 requires RDMA, so it may run over TCP",
     "remove the variable from the pod"},
    {Reason::kRankOverridden, kWarning, "RankOverridden",
     "sets RANK=$0 where its completion index is $1, so ranks collide",
     "remove RANK from the pod, which then gets the right one"},
    {Reason::kRdmaDisabled, kWarning, "RdmaDisabledByUser",
     "asks for RDMA devices and switches RDMA off with $0=$1", "remove the variable from the pod"},
    {Reason::kNcclHcaUnknown, kWarning, "NcclHcaUnknown",
     "sets NCCL_IB_HCA=$0, which is none of the devices $1 of node $2",
     "remove the variable: the node agent sets it to the container's own devices"},
    {Reason::kSocketInterfaceUnknown, kWarning, "SocketInterfaceUnknown",
     "sets $0=$1, and the pod has only the network interfaces $2",
     "name one of these, or remove the variable"},
    {Reason::kGpuDirectMissing, kWarning, "GpuDirectMissing",
     "asks for GPUDirect RDMA ($0=$1), which node $2 does not have, so data goes through host "
     "memory",
     "load nvidia_peermem there, use a kernel with dma-buf, or choose nodes with the label "
     "railhead.io/gpudirect other than none"},
    {Reason::kFewerDevicesThanGpus, kInfo, "RdmaFewerDevicesThanGpus",
     "asks for $0 RDMA devices beside $1 GPUs, and node $2 has $3 rails",
     "ask for as many RDMA devices as GPUs, so that each GPU has a rail near it"},
    {Reason::kMemlockTooLow, kWarning, "MemlockTooLow", "may pin $0, and RDMA needs $1 at least",
     "$2"},
    {Reason::kMemlockTight, kInfo, "MemlockTight",
     "may pin $0 where its rails would use $1: they make do with less, and are slower", "$2"},
    {Reason::kSharedMemoryTooSmall, kWarning, "SharedMemoryTooSmall",
     "has $0 of /dev/shm for $1 GPUs, which is too little for the shared memory of NCCL and of "
     "data "
     "loaders",
     "mount an emptyDir with medium Memory at /dev/shm, or set spec.sharedMemory.size in its "
     "RailProfile"},
    {Reason::kRdmaNotUsed, kWarning, "RdmaNotUsed", "uses TCP where RDMA was asked for: $0",
     "repair what is named there; railhead-perf --preflight in these pods says more"},
    {Reason::kRailsNotGiven, kWarning, "RdmaRailsNotGiven", "rank $0 has no RDMA rails: $1",
     "see that Railhead's node agent offers the resource that the pod asks for, and start the "
     "process in the container that asks for it"},
    {Reason::kDeviceNodeMissing, kWarning, "RdmaDeviceNodeMissing",
     "rank $0 cannot open the device of rail $1 ($2): $3",
     "load ib_uverbs on node $4 and see that the container may open /dev/infiniband/uverbs*"},
    {Reason::kRailPortDown, kWarning, "RailPortDown",
     "rank $0 started without rail $1 ($2), whose port is down: $3",
     "repair the cable, NIC or switch port of node $4, and start the job again"},
    {Reason::kRailUnusable, kWarning, "RailUnusable", "rank $0 cannot use rail $1 ($2): $3",
     "run railhead-perf --preflight in these pods, which says what is to be repaired"},
    {Reason::kRailDown, kWarning, "RailDown", "has lost rail $0 ($1) of node $2: $3",
     "repair the cable, NIC or switch port; the rail comes back by itself"},
    {Reason::kRailPathLost, kWarning, "RailPathLost",
     "does not reach all of its peers by rail $0 ($1) of node $2, whose port is not known to be "
     "down; $3 other pods of the job see the rail lost, too",
     "look for the fault in the switches and cables of this rail between their nodes, and at this "
     "node's NIC; the rail comes back by itself"},
    {Reason::kUnauthenticated, kInfo, "Unauthenticated",
     "runs in a job that any process can join which knows its name: rank $0 has no secret, because "
     "$1",
     "repair what is named there, or mount a Secret and set RAILHEAD_SECRET_FILE; with "
     "RAILHEAD_JOB_SECRET=off in all pods it is meant so"},
    {Reason::kRankSilent, kWarning, "RuntimeSilent",
     "reports nothing at port $0, while $1 other pods of its job do and miss ranks",
     "see that it runs Railhead's runtime, that RAILHEAD_METRICS_PORT is the same in all pods, and "
     "that a NetworkPolicy lets the operator in"},
    {Reason::kMetricsPortShared, kWarning, "MetricsPortShared",
     "is in the network of node $0 and has port $1 in common with pod $2 there",
     "give one of them another RAILHEAD_METRICS_PORT and railhead.io/metrics-port, or do "
     "without hostNetwork"},
    {Reason::kProfilesDiffer, kWarning, "RailProfilesDiffer",
     "has RailProfile $0, and pod $1 of the same job has $2",
     "create the job again, and let one profile match all of its pods"},
    {Reason::kEnvironmentDiffers, kWarning, "RdmaEnvironmentDiffers",
     "sets $0=$1, and pod $2 of the same job $0=$3", "set it alike in all pods of the job"},
    {Reason::kDeviceCountsDiffer, kWarning, "RdmaDeviceCountsDiffer",
     "asks for $0 RDMA devices, and pod $1 of the same job for $2: all use what the least has",
     "ask for as many in all pods of the job"},
    {Reason::kRailsDiffer, kWarning, "RailsDiffer",
     "rank $0 was given rails $1, and rank $2 in pod $3 rails $4: only rails that all have are "
     "used",
     "ask for all devices of a node, or for resources that are tied to one rail each"},
    {Reason::kLinkLayerMixed, kWarning, "LinkLayerMixed",
     "has $0 ($1), and pod $2 of the same job has $3: they cannot talk to each other by RDMA",
     "keep the job on nodes of one fabric: a nodeSelector for railhead.io/link-layer"},
    {Reason::kMtuDiffers, kWarning, "RailMtuDiffers",
     "rail $0 ($1) has an MTU of $2, and pod $3 has $4 on that rail",
     "set the same MTU on all nodes and switches of the rail"},
    {Reason::kRateDiffers, kWarning, "RailRateDiffers",
     "rail $0 ($1) has a rate of $2, and pod $3 has $4 on that rail",
     "reseat or replace the cable: a link that trained down is the usual cause"},
};

// Of a text that was seen: the fix has to stand behind it, in an Event of 1024 bytes.
constexpr size_t kMostSeen = 320;

// One line of what a user, a node or a runtime wrote.
void AppendSeen(absl::string_view seen, std::string& message) {
  message += PrintableText(seen, kMostSeen);
}

// Places are filled here, and not by absl::Substitute: what was seen may hold a '$' of its own, and
// a row that names a place which nobody fills must show in a test rather than abort.
std::string Fill(absl::string_view text, const std::vector<std::string>& seen) {
  std::string filled;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto place = i + 1 < text.size() ? static_cast<size_t>(text[i + 1] - '0') : seen.size();
    if (text[i] == '$' && place < seen.size()) {
      AppendSeen(seen[place], filled);
      ++i;
    } else {
      filled.push_back(text[i]);
    }
  }
  return filled;
}

}  // namespace

absl::Span<const ReasonRow> Reasons() { return kReasons; }

const ReasonRow& RowOf(Reason reason) {
  return *std::find_if(std::begin(kReasons), std::end(kReasons),
                       [reason](const ReasonRow& row) { return row.reason == reason; });
}

Finding MakeFinding(Reason reason, absl::string_view pod, absl::string_view container,
                    const std::vector<std::string>& seen) {
  const ReasonRow& row = RowOf(reason);
  std::string fix = Fill(row.fix, seen);
  std::string message = absl::StrCat("pod ", pod, container.empty() ? "" : ", container ",
                                     container, ": ", Fill(row.what, seen), "; ", fix);
  return {reason,       std::string(pod),   std::string(container),
          std::nullopt, std::move(message), std::move(fix),
          row.severity};
}

Finding MakeRailFinding(Reason reason, absl::string_view pod, absl::string_view container,
                        const RailPlace& place, const std::vector<std::string>& seen) {
  Finding finding = MakeFinding(reason, pod, container, seen);
  finding.part = absl::StrCat("rail ", place.rail);
  finding.place = place;
  return finding;
}

void SayThatItMayPass(absl::string_view why, Finding& finding) {
  finding.severity = Severity::kInfo;
  absl::StrAppend(&finding.message, " (", why, ")");
}

}  // namespace railhead::op::verdict
