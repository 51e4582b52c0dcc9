// SPDX-License-Identifier: Apache-2.0
//
// All that the verdict can say: one table of reasons, with what is wrong and what to do.
#ifndef RAILHEAD_OPERATOR_VERDICT_REASONS_H_
#define RAILHEAD_OPERATOR_VERDICT_REASONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace railhead::op::verdict {

enum class Reason {
  // A pod that finds no node.
  kResourceUnknown,
  kTooManyDevices,
  kRailsDownAtNodes,
  kDevicesInUse,
  // Its spec, and what became of it at admission.
  kAdmissionMissed,
  kProfileOutdated,
  kNotDone,
  kPolicyOverridden,
  kRankOverridden,
  kRdmaDisabled,
  kNcclHcaUnknown,
  kSocketInterfaceUnknown,
  kGpuDirectMissing,
  kFewerDevicesThanGpus,
  kMemlockTooLow,
  kMemlockTight,
  kSharedMemoryTooSmall,
  // What its runtime says.
  kRdmaNotUsed,
  kRailsNotGiven,
  kDeviceNodeMissing,
  kRailPortDown,
  kRailUnusable,
  kRailDown,
  kRailPathLost,
  kUnauthenticated,
  // What fits to no other pod.
  kRankSilent,
  kMetricsPortShared,
  kProfilesDiffer,
  kEnvironmentDiffers,
  kDeviceCountsDiffer,
  kRailsDiffer,
  kLinkLayerMixed,
  kMtuDiffers,
  kRateDiffers,
};

enum class Severity {
  kInfo,     // to be known; nothing is broken
  kWarning,  // the job runs slower than it was meant to, or not at all
};

struct ReasonRow {
  Reason reason;
  Severity severity;
  absl::string_view name;  // in CamelCase, for machines
  absl::string_view what;  // with places $0, $1, ... for what was seen
  absl::string_view fix;   // the same places
};

absl::Span<const ReasonRow> Reasons();
const ReasonRow& RowOf(Reason reason);

// Where a rail is.
struct RailPlace {
  int rail = 0;
  std::string node;

  bool operator==(const RailPlace&) const = default;
};

// One thing that is wrong with one pod. Of a pod there is one finding for each reason and part:
// these say what it is, without anything that moves; the message may change.
struct Finding {
  Reason reason;
  std::string pod;                 // its name
  std::string part;                // the container, "rail N" or a word; empty for the whole pod
  std::optional<RailPlace> place;  // where the reason is about a rail
  std::string message;             // one line: pod, container, what, and the fix
  std::string fix;                 // the end of the message
  Severity severity = Severity::kWarning;  // mostly that of the reason

  bool operator==(const Finding&) const = default;
};

// The message of a finding: "pod P, container C: WHAT; FIX". `container` may be empty.
Finding MakeFinding(Reason reason, absl::string_view pod, absl::string_view container,
                    const std::vector<std::string>& seen);
// The same for a reason that is about a rail.
Finding MakeRailFinding(Reason reason, absl::string_view pod, absl::string_view container,
                        const RailPlace& place, const std::vector<std::string>& seen);

// What may be mending itself: to be known, and no warning yet.
void SayThatItMayPass(absl::string_view why, Finding& finding);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_REASONS_H_
