// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/pod_admission.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "operator/admission/gang_gate.h"
#include "operator/admission/quoted.h"
#include "operator/objects/label_selector.h"
#include "operator/objects/variable_name.h"
#include "operator/profiles/profile_environment.h"
#include "operator/profiles/profile_match.h"

namespace railhead::op {
namespace {

using kube::Json;

// Suffix of the version in the stamp of the chart's admission policy.
constexpr char kByPolicy[] = "+policy";

PodSettings SettingsOf(const Json& pod, const InjectionConfig& config, const ProfileSet& profiles,
                       const std::string& space, PodAdmission& admission) {
  PodSettings settings;
  settings.environment = config.environment;
  const ProfileChoice choice =
      ChooseProfile(profiles.profiles, profiles.NamespaceLabels(space), LabelsOf(pod));
  if (choice.conflicting.size() > 1) {
    NoteNotDone(
        NoteOf(NotDone::kProfileConflict, Cause::kSamePriority,
               {choice.conflicting[0], choice.conflicting[1], absl::StrCat(choice.priority)}),
        admission);
  }
  if (choice.profile == nullptr) return settings;
  settings.profile = choice.profile;
  settings.stamp = absl::StrCat(choice.profile->name, "@", choice.profile->generation);
  ProfileEnvironment environment = EnvironmentOf(*choice.profile, profiles.facts);
  for (auto& [name, variable] : environment.variables) {
    settings.reasons[name] =
        absl::StrCat(name, "=", variable.value, " (", settings.stamp, ": ", variable.reason, ")");
    settings.environment[name] = std::move(variable.value);
  }
  for (const std::string& warning : environment.warnings) {
    admission.draft.Warn(absl::StrCat("RailProfile ", choice.profile->name, ": ", warning));
  }
  return settings;
}

// The names in the annotation of what was kept.
std::set<std::string> ReadKept(const Annotations& annotations, Draft& draft) {
  std::set<std::string> kept;
  const auto found = annotations.find(kKept);
  if (found == annotations.end()) return kept;
  for (absl::string_view name : absl::StrSplit(found->second, ',', absl::SkipWhitespace())) {
    name = absl::StripAsciiWhitespace(name);
    if (IsVariableName(name)) {
      kept.emplace(name);
    } else {
      draft.Warn(absl::StrCat("metadata.annotations[", kKept, "]: ", Quoted(name),
                              " is not the name of a variable"));
    }
  }
  return kept;
}

Earlier EarlierOf(const Annotations& annotations) {
  const auto stamp = annotations.find(kInjected);
  if (stamp == annotations.end()) return Earlier::kNothing;
  return absl::EndsWith(stamp->second, kByPolicy) ? Earlier::kPolicy : Earlier::kWebhook;
}

}  // namespace

void NoteNotDone(NotDoneNote note, PodAdmission& admission) {
  std::vector<NotDoneNote>& notes = admission.not_done;
  const bool known = std::any_of(notes.begin(), notes.end(), [&](const NotDoneNote& other) {
    return other.reason == note.reason;
  });
  if (known) return;
  if (RowOf(note.reason).level != NotDoneLevel::kQuiet) admission.draft.Warn(SentenceOf(note));
  notes.push_back(std::move(note));
}

absl::StatusOr<PodAdmission> BeginPodAdmission(const Json& pod, const InjectionConfig& config,
                                               const ProfileSet& profiles,
                                               const std::string& space) {
  absl::StatusOr<Annotations> annotations = ReadAnnotations(pod);
  if (!annotations.ok()) return annotations.status();
  PodAdmission admission{.config = config, .draft = Draft(pod)};
  admission.settings = SettingsOf(pod, config, profiles, space, admission);
  admission.earlier = EarlierOf(*annotations);
  admission.kept_before = ReadKept(*annotations, admission.draft);
  admission.kept = admission.kept_before;
  admission.annotations = *std::move(annotations);
  if (config.gangs) AddGangSize(pod, config.gang_kinds, admission.annotations);
  return admission;
}

}  // namespace railhead::op
