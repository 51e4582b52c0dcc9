// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/reasons.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/printable_text.h"

namespace railhead::op::verdict {
namespace {

constexpr Severity kWarn = Severity::kWarn;
constexpr Severity kFail = Severity::kFail;

constexpr ReasonRow kReasons[] = {
    {Reason::kResourceUnknown, kFail, "RdmaResourceUnknown", "no node offers $0",
     "correct the resource's name, or check that the node agents run and that their configuration "
     "has this resource"},
    {Reason::kTooManyDevices, kFail, "RdmaTooManyDevices",
     "requests $1 of $0, but no node has more than $2", "request at most $2"},
    {Reason::kRailsDownAtNodes, kFail, "RdmaRailsDownAtNodes",
     "requests $1 of $0, but too few work, because rails are down: $2",
     "repair the cable, NIC or switch port (details: kubectl describe node)"},
    {Reason::kDevicesInUse, kWarn, "RdmaDevicesInUse",
     "waits for $1 of $0: nodes that have enough are in use or excluded by the pod's scheduling "
     "rules",
     "wait until pods end, or read the scheduler's message: kubectl describe pod"},
    {Reason::kAdmissionMissed, kFail, "RdmaAdmissionMissed",
     "requests RDMA but did not pass Railhead's webhook, so it lacks the fabric's environment "
     "variables",
     "check that the operator is ready, and recreate the pod"},
    {Reason::kProfileOutdated, kWarn, "RailProfileOutdated",
     "has the environment of an earlier version of RailProfile $0 (generation $1, now $2)",
     "recreate the pod to apply the current version"},
    {Reason::kNotDone, kFail, "RailheadNotDone", "$0: $1", "$2"},
    {Reason::kPolicyOverridden, kFail, "RdmaPolicyOverridden",
     "sets RAILHEAD_FALLBACK=$0 although RailProfile $1 requires RDMA, so it may run over TCP",
     "remove the variable from the pod"},
    {Reason::kRankOverridden, kFail, "RankOverridden",
     "sets RANK=$0 although its completion index is $1, so ranks collide",
     "remove RANK from the pod: Railhead sets the correct one"},
    {Reason::kRdmaDisabled, kFail, "RdmaDisabledByUser",
     "requests RDMA devices but disables RDMA with $0=$1", "remove the variable from the pod"},
    {Reason::kNcclHcaUnknown, kFail, "NcclHcaUnknown",
     "sets NCCL_IB_HCA=$0, which matches none of the devices $1 of node $2",
     "remove the variable: the node agent sets it to the container's own devices"},
    {Reason::kSocketInterfaceUnknown, kFail, "SocketInterfaceUnknown",
     "sets $0=$1, but the pod has only the network interfaces $2",
     "use one of these, or remove the variable"},
    {Reason::kGpuDirectMissing, kFail, "GpuDirectMissing",
     "requests GPUDirect RDMA ($0=$1), which node $2 does not support, so data is copied through "
     "host memory",
     "load nvidia_peermem there, use a kernel with dma-buf, or select nodes whose label "
     "railhead.io/gpudirect is not none"},
    {Reason::kFewerDevicesThanGpus, kWarn, "RdmaFewerDevicesThanGpus",
     "requests $0 RDMA devices for $1 GPUs, although node $2 has $3 rails",
     "request as many RDMA devices as GPUs, so that each GPU has a nearby rail"},
    {Reason::kSharpNotPossible, kFail, "SharpNotPossible",
     "enables SHARP (NCCL_COLLNET_ENABLE=1), but $0, so NCCL reduces without switches", "$1"},
    {Reason::kMemlockTooLow, kFail, "MemlockTooLow",
     "may lock only $0 of memory, but RDMA needs at least $1", "$2"},
    {Reason::kMemlockTight, kWarn, "MemlockTight",
     "may lock only $0 of memory, but its rails would use $1: they use less and are slower", "$2"},
    {Reason::kSharedMemoryTooSmall, kFail, "SharedMemoryTooSmall",
     "has $0 of /dev/shm for $1 GPUs, too little for the shared memory of NCCL and data loaders",
     "mount an emptyDir with medium Memory at /dev/shm, or set spec.sharedMemory.size in its "
     "RailProfile"},
    {Reason::kRdmaNotUsed, kFail, "RdmaNotUsed", "uses TCP although RDMA was requested: $0",
     "fix this cause (details: railhead-perf --preflight in these pods)"},
    {Reason::kRailsNotGiven, kFail, "RdmaRailsNotGiven", "rank $0 has no RDMA rails: $1",
     "check that Railhead's node agent offers the resource that the pod requests, and start the "
     "process in the container that requests it"},
    {Reason::kDeviceNodeMissing, kFail, "RdmaDeviceNodeMissing",
     "rank $0 cannot open the device of rail $1 ($2): $3",
     "load ib_uverbs on node $4 and check that the container may open /dev/infiniband/uverbs*"},
    {Reason::kRailPortDown, kFail, "RailPortDown",
     "rank $0 started without rail $1 ($2), whose port is down: $3",
     "repair the cable, NIC or switch port of node $4, and restart the job"},
    {Reason::kRailUnusable, kFail, "RailUnusable", "rank $0 cannot use rail $1 ($2): $3",
     "run railhead-perf --preflight in these pods: it reports the cause and the fix"},
    {Reason::kRailDown, kFail, "RailDown", "has lost rail $0 ($1) of node $2: $3",
     "repair the cable, NIC or switch port: the rail then recovers by itself"},
    {Reason::kRailPathLost, kFail, "RailPathLost",
     "does not reach all of its peers over rail $0 ($1) of node $2, whose port is not known to be "
     "down; $3 other pods of the job have also lost the rail",
     "check this rail's switches and cables between their nodes, and this node's NIC: the rail "
     "then recovers by itself"},
    {Reason::kUnauthenticated, kWarn, "Unauthenticated",
     "runs in a job that any process that knows its name can join: rank $0 has no secret, because "
     "$1",
     "fix this cause, or mount a Secret and set RAILHEAD_SECRET_FILE; if this is intended, set "
     "RAILHEAD_JOB_SECRET=off in all pods"},
    {Reason::kRankSilent, kFail, "RuntimeSilent",
     "serves no metrics on port $0, while $1 other pods of its job do and ranks are missing",
     "check that it runs Railhead's runtime, that RAILHEAD_METRICS_PORT is the same in all pods, "
     "and that NetworkPolicies admit the operator"},
    {Reason::kMetricsPortShared, kFail, "MetricsPortShared",
     "uses the network of node $0 and the same port $1 as pod $2 there",
     "give one of them another RAILHEAD_METRICS_PORT and railhead.io/metrics-port, or remove "
     "hostNetwork"},
    {Reason::kProfilesDiffer, kFail, "RailProfilesDiffer",
     "has RailProfile $0, but pod $1 of the same job has $2",
     "recreate the job, with one profile that matches all of its pods"},
    {Reason::kEnvironmentDiffers, kFail, "RdmaEnvironmentDiffers",
     "sets $0=$1, but pod $2 of the same job sets $0=$3",
     "set the same value in all pods of the job"},
    {Reason::kDeviceCountsDiffer, kFail, "RdmaDeviceCountsDiffer",
     "requests $0 RDMA devices, but pod $1 of the same job requests $2: all pods use the lowest "
     "number",
     "request the same number in all pods of the job"},
    {Reason::kRailsDiffer, kFail, "RailsDiffer",
     "rank $0 was given rails $1, but rank $2 in pod $3 rails $4: only rails that all ranks have "
     "are used",
     "request all devices of a node, or resources that belong to one rail each"},
    {Reason::kLinkLayerMixed, kFail, "LinkLayerMixed",
     "has $0 ($1), but pod $2 of the same job has $3: they cannot communicate over RDMA",
     "keep the job on nodes of one fabric with a nodeSelector for railhead.io/link-layer"},
    {Reason::kMtuDiffers, kFail, "RailMtuDiffers",
     "rail $0 ($1) has an MTU of $2, but pod $3 has $4 on that rail",
     "set the same MTU on all nodes and switches of the rail"},
    {Reason::kRateDiffers, kFail, "RailRateDiffers",
     "rail $0 ($1) has a rate of $2, but pod $3 has $4 on that rail",
     "reseat or replace the cable: a link that trained down is the usual cause"},
};

// Maximum length of a text from a user, a node or a runtime: the fix follows it in an Event of 1024
// bytes.
constexpr size_t kMostSeen = 320;

// Fills the places here, not with absl::Substitute: an observed text may contain '$', and a row
// with an unfilled place must fail a test rather than abort.
std::string Fill(absl::string_view text, const std::vector<std::string>& seen) {
  std::string filled;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto place = i + 1 < text.size() ? static_cast<size_t>(text[i + 1] - '0') : seen.size();
    if (text[i] == '$' && place < seen.size()) {
      filled += PrintableText(seen[place], kMostSeen);
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

PodFinding MakeFinding(Reason reason, absl::string_view pod, absl::string_view container,
                       const std::vector<std::string>& seen) {
  const ReasonRow& row = RowOf(reason);
  return {{row.severity, std::string(row.name),
           absl::StrCat("pod ", pod, container.empty() ? "" : ", container ", container),
           Fill(row.what, seen), Fill(row.fix, seen)},
          reason,
          std::string(pod),
          std::string(container),
          std::nullopt};
}

PodFinding MakeRailFinding(Reason reason, absl::string_view pod, absl::string_view container,
                           const RailPlace& place, const std::vector<std::string>& seen) {
  PodFinding finding = MakeFinding(reason, pod, container, seen);
  finding.part = absl::StrCat("rail ", place.rail);
  finding.place = place;
  return finding;
}

void MarkTransient(absl::string_view why, PodFinding& finding) {
  finding.severity = Severity::kWarn;
  absl::StrAppend(&finding.observed, " (", why, ")");
}

}  // namespace railhead::op::verdict
