// SPDX-License-Identifier: Apache-2.0
//
// Checks the operator's webhook, its leader election and the RailProfiles.
#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "cli/doctor/checks.h"
#include "cli/output/command.h"
#include "cli/output/words.h"
#include "kube/auth/certificates.h"

namespace railhead::cli::doctor {
namespace {

// A leader renews its Lease every 2 s; the rest allows for a wrong clock of its node.
constexpr absl::Duration kUntilLost = absl::Minutes(1);

std::string OperatorLogs(const Evidence& evidence) {
  return Command("kubectl -n $0 logs -l app.kubernetes.io/component=operator --tail=100 --prefix",
                 {InstallationOf(evidence).space});
}

std::string DayOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

// Returns the certificate of a bundle with the latest expiry, if there is one.
std::optional<kube::CertificateFacts> BestOf(const std::string& bundle) {
  std::optional<kube::CertificateFacts> best;
  for (const std::string& pem : kube::SplitCertificates(bundle)) {
    const absl::StatusOr<kube::CertificateFacts> facts = kube::InspectCertificate(pem);
    if (facts.ok() && (!best || facts->not_after > best->not_after)) best = *facts;
  }
  return best;
}

// Returns why the API server cannot trust this bundle; empty if it can.
std::string Mistrust(const std::string& bundle, absl::Time now) {
  if (bundle.empty()) return "has no caBundle";
  const std::optional<kube::CertificateFacts> best = BestOf(bundle);
  if (!best) return "has a caBundle without a certificate";
  if (best->not_after <= now) {
    return absl::StrCat("trusts a certificate that expired at ", DayOf(best->not_after));
  }
  return "";
}

void CheckConfiguration(const Evidence& evidence, const WebhookConfiguration& configuration,
                        Notes& notes) {
  const std::string object = absl::StrCat("mutatingwebhookconfiguration ", configuration.name);
  const std::string fix =
      absl::StrCat("read why the operator does not write it: ", OperatorLogs(evidence),
                   "; if another tool resets caBundle, exclude that field there");
  if (configuration.webhooks.empty()) {
    notes.Fail(object, "has no webhooks", "helm upgrade with the same values restores it");
  }
  std::set<std::string> told;
  for (const WebhookConfiguration::Webhook& webhook : configuration.webhooks) {
    const std::string why = Mistrust(webhook.bundle, evidence.now);
    if (!why.empty()) {
      const bool ignored = webhook.failure_policy == "Ignore";
      notes.Fail(object,
                 absl::StrCat("webhook ", webhook.name, " ", why,
                              ", so the API server does not call it: new pods that request rdma/* ",
                              ignored ? "start without ranks and environment" : "are rejected"),
                 fix);
      continue;
    }
    const std::optional<kube::CertificateFacts> best = BestOf(webhook.bundle);
    if (!best || !kube::RenewalDue(*best, evidence.now) || !told.insert(webhook.bundle).second) {
      continue;
    }
    notes.Warn(
        object,
        absl::StrCat("renewal of the CA certificate was due at ", DayOf(kube::RenewalTime(*best)),
                     "; it expires at ", DayOf(best->not_after)),
        fix);
  }
}

const op::ProfileCondition* Of(const op::StoredProfile& profile, const char* type) {
  const auto found = profile.conditions.find(type);
  return found == profile.conditions.end() ? nullptr : &found->second;
}

}  // namespace

void CheckLeader(const Evidence& evidence, Notes& notes) {
  if (!IsRead("leases.coordination.k8s.io", evidence)) return;
  const bool has_operator =
      std::any_of(evidence.workloads.begin(), evidence.workloads.end(),
                  [](const Workload& workload) { return workload.component == "operator"; });
  if (evidence.leaders.empty()) {
    if (has_operator) {
      notes.Fail("", "the Lease of the operator is missing",
                 "helm upgrade with the same values restores it");
    }
    return;
  }
  for (const Leader& leader : evidence.leaders) {
    const std::string object = absl::StrCat("lease ", leader.space, "/", leader.lease);
    const absl::Duration age = evidence.now - leader.renewed;
    if (leader.holder.empty()) {
      notes.Fail(object, "no replica of the operator leads: no diagnosis, gangs or topology",
                 absl::StrCat("read why: ", OperatorLogs(evidence)));
    } else if (age > std::max(4 * leader.promised, kUntilLost)) {
      notes.Fail(object,
                 absl::StrCat(leader.holder, " leads and has not renewed it since ",
                              DayOf(leader.renewed), ": no diagnosis, gangs or topology"),
                 absl::StrCat("read why: ", OperatorLogs(evidence)));
    } else {
      notes.Conclude(absl::StrCat(leader.holder, " leads"));
    }
  }
}

void CheckWebhook(const Evidence& evidence, Notes& notes) {
  if (!IsRead("mutatingwebhookconfigurations.admissionregistration.k8s.io", evidence)) return;
  if (evidence.webhooks.empty()) {
    if (evidence.workloads.empty()) return;  // nothing is installed; CheckInstall reports it
    notes.Fail("",
               "the chart's MutatingWebhookConfiguration is missing: new pods get no ranks and no "
               "environment",
               "helm upgrade with the same values restores it");
  }
  absl::Time until = absl::InfiniteFuture();
  for (const WebhookConfiguration& configuration : evidence.webhooks) {
    CheckConfiguration(evidence, configuration, notes);
    for (const auto& webhook : configuration.webhooks) {
      if (const auto best = BestOf(webhook.bundle)) until = std::min(until, best->not_after);
    }
  }
  notes.Conclude(absl::StrCat("trusted; the CA certificate is valid until ", DayOf(until)));
}

void CheckProfiles(const Evidence& evidence, Notes& notes) {
  if (!IsRead("railprofiles.railhead.io", evidence)) return;
  for (const op::StoredProfile& profile : evidence.profiles) {
    const std::string object = absl::StrCat("railprofile ", profile.name);
    const op::ProfileCondition* accepted = Of(profile, "Accepted");
    const op::ProfileCondition* conflicts = Of(profile, "Conflicts");
    std::string refusal = profile.refusal;
    if (refusal.empty() && accepted != nullptr && accepted->status == "False") {
      refusal = accepted->message;
    }
    if (!refusal.empty()) {
      notes.Fail(object, refusal,
                 Command("correct the field: kubectl edit railprofile $0", {profile.name}));
    } else if (conflicts != nullptr && conflicts->status == "True") {
      notes.Warn(object, conflicts->message, "give one of them another priority");
    } else if (accepted != nullptr && profile.observed_generation < profile.generation) {
      notes.Warn(object,
                 absl::StrCat("the operator has read generation ", profile.observed_generation,
                              " of ", profile.generation),
                 "see the checks operator and leader; normally the operator reads a change within "
                 "a second");
    }
  }
  notes.Conclude(
      evidence.profiles.empty()
          ? "none: pods get the defaults of the operator's configuration"
          : absl::StrCat(Counted(static_cast<int64_t>(evidence.profiles.size()), "profile"),
                         " accepted"));
}

}  // namespace railhead::cli::doctor
