// SPDX-License-Identifier: Apache-2.0
//
// All findings that the diagnosis can make: one table of reasons, with cause and fix. A severity is
// kFail (the job runs slower than intended, or not at all) or kWarn (for information, or may pass).
// RailReports and metrics call these Warning and Info, types of Events Warning and Normal.
#ifndef RAILHEAD_OPERATOR_VERDICT_REASONS_H_
#define RAILHEAD_OPERATOR_VERDICT_REASONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/finding.h"

namespace railhead::op::verdict {

enum class Reason {
  // The pod has no node.
  kResourceUnknown,
  kTooManyDevices,
  kRailsDownAtNodes,
  kDevicesInUse,
  // Its spec, and its admission.
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
  kSharpNotPossible,
  kMemlockTooLow,
  kMemlockTight,
  kSharedMemoryTooSmall,
  // Reports of its runtime.
  kRdmaNotUsed,
  kRailsNotGiven,
  kDeviceNodeMissing,
  kRailPortDown,
  kRailUnusable,
  kRailDown,
  kRailPathLost,
  kUnauthenticated,
  // Contradictions to other pods.
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

struct ReasonRow {
  Reason reason;
  Severity severity;
  absl::string_view name;  // in CamelCase, for programs
  absl::string_view what;  // cause, with placeholders $0, $1, ...
  absl::string_view fix;   // fix, with the same placeholders
};

absl::Span<const ReasonRow> Reasons();
const ReasonRow& RowOf(Reason reason);

// Location of a rail.
struct RailPlace {
  int rail = 0;
  std::string node;

  bool operator==(const RailPlace&) const = default;
};

// A fault of one pod; the check is the reason's name. A pod has one finding per reason and part,
// which identify it and do not change; what was observed may change.
struct PodFinding : Finding {
  Reason reason;
  std::string pod;                 // its name
  std::string part;                // container, "rail N" or a word; empty: the whole pod
  std::optional<RailPlace> place;  // set if the reason concerns a rail

  bool operator==(const PodFinding&) const = default;
};

// Returns a finding about "pod P, container C". `container` may be empty. `seen`: values of the
// placeholders.
PodFinding MakeFinding(Reason reason, absl::string_view pod, absl::string_view container,
                       const std::vector<std::string>& seen);
// Likewise, for a reason that concerns a rail.
PodFinding MakeRailFinding(Reason reason, absl::string_view pod, absl::string_view container,
                           const RailPlace& place, const std::vector<std::string>& seen);

// Makes it a warning that may pass, not a failure; `why` follows what was observed.
void MarkTransient(absl::string_view why, PodFinding& finding);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_REASONS_H_
