// SPDX-License-Identifier: Apache-2.0
//
// Pre-flight check of the C API.
#include "runtime/comm/setup/preflight.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/printable_text.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/handle.h"
#include "runtime/config/env.h"

namespace {

using railhead::Severity;
using railhead::preflight::RankFinding;

static_assert(static_cast<int>(Severity::kOk) == rhFindingOk);
static_assert(static_cast<int>(Severity::kNote) == rhFindingNote);
static_assert(static_cast<int>(Severity::kWarn) == rhFindingWarn);
static_assert(static_cast<int>(Severity::kFail) == rhFindingFail);

// The result points into `finding`.
rhFinding_t ToC(const RankFinding& finding) {
  rhFinding_t to = {};
  to.verdict = static_cast<rhVerdict_t>(finding.severity);
  to.check = finding.check.c_str();
  to.rail = finding.rail.has_value() ? finding.rail->rail : -1;
  to.device = finding.rail.has_value() ? finding.rail->device.c_str() : "";
  to.transport = finding.rail.has_value() ? finding.rail->transport.c_str() : "";
  to.ranks = finding.ranks.data();
  to.rank_count = static_cast<int>(finding.ranks.size());
  to.where = finding.object.c_str();
  to.value = finding.observed.c_str();
  to.fix = finding.fix.c_str();
  return to;
}

}  // namespace

rhResult_t rhPreflight(rhFindingFunction_t each, void* context) {
  using railhead::comm::Guard;
  using railhead::comm::Report;
  return Guard(nullptr, [&] {
    if (each == nullptr) return railhead::comm::NullArgument(nullptr, "rhPreflight", "each");
    absl::StatusOr<railhead::comm::CommunicatorOptions> options = railhead::comm::ReadOptions();
    if (!options.ok()) return Report(nullptr, options.status());
    absl::StatusOr<railhead::config::Rendezvous> rendezvous =
        railhead::config::ReadRendezvous(railhead::config::ProcessEnvironment);
    if (!rendezvous.ok()) return Report(nullptr, rendezvous.status());
    options->rendezvous = *std::move(rendezvous);
    const absl::StatusOr<std::vector<RankFinding>> findings =
        railhead::comm::RunPreflight(*std::move(options));
    if (!findings.ok()) return Report(nullptr, findings.status());
    for (RankFinding finding : *findings) {
      // Names and devices are what other ranks report.
      for (std::string* text : {&finding.object, &finding.observed, &finding.fix}) {
        *text = railhead::PrintableText(*text);
      }
      if (finding.rail.has_value()) {
        finding.rail->device = railhead::PrintableText(finding.rail->device);
      }
      const rhFinding_t entry = ToC(finding);
      each(&entry, context);
    }
    return rhSuccess;
  });
}
