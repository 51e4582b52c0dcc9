// SPDX-License-Identifier: Apache-2.0
#include "operator/mutation.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "operator/gangs/gang_gate.h"
#include "operator/gangs/names.h"
#include "operator/gangs/pod_rules.h"
#include "operator/injection.h"
#include "operator/json_patch.h"
#include "operator/label_selector.h"
#include "operator/profile_environment.h"
#include "operator/profile_match.h"
#include "operator/rdma_containers.h"
#include "operator/shared_memory.h"
#include "operator/variable_name.h"

namespace railhead::op {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

constexpr char kCompletionIndex[] = "batch.kubernetes.io/job-completion-index";
constexpr char kJobNameLabel[] = "batch.kubernetes.io/job-name";
constexpr char kWorldSize[] = "railhead.io/world-size";
constexpr char kProfile[] = "railhead.io/profile";
constexpr char kInjected[] = "railhead.io/injected";
constexpr char kKept[] = "railhead.io/kept-environment";
constexpr char kMetricsPort[] = "9402";

// How the version ends in the stamp of the chart's admission policy, which goes before the webhook
// and knows no profile.
constexpr char kByPolicy[] = "+policy";

// By these a container turns RDMA off, or takes HCAs of its own choice. Who sets one is noted even
// where we would not have set it: nobody else can tell later whose it is (verdict/spec_rules.cc).
constexpr const char* kChoices[] = {"NCCL_IB_DISABLE", "NCCL_IB_HCA", "NCCL_NET",
                                    "RAILHEAD_FALLBACK", "RAILHEAD_TRANSPORT"};

// The API server refuses objects whose annotations, keys and values together, are larger.
constexpr size_t kMaxAnnotationBytes = 256U << 10U;

// A whole number without sign, as Kubernetes writes its own; -1 for anything else.
int ParseCount(const std::string& text) {
  int value = 0;
  if (text.empty() || text.size() > 9 ||
      text.find_first_not_of("0123456789") != std::string::npos ||
      !absl::SimpleAtoi(text, &value)) {
    return -1;
  }
  return value;
}

// The annotations of an object (a pod, or a template), known to be text. Absent ones are empty.
absl::StatusOr<std::map<std::string, std::string>> ReadAnnotations(const Json& object) {
  std::map<std::string, std::string> annotations;
  const Json* metadata = Find(object, "metadata");
  if (metadata == nullptr || metadata->is_null()) return annotations;
  if (!metadata->is_object()) return absl::InvalidArgumentError("metadata is not an object");
  const Json* found = Find(*metadata, "annotations");
  if (found == nullptr || found->is_null()) return annotations;
  if (!found->is_object()) return absl::InvalidArgumentError("metadata.annotations is no object");
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) {
      return absl::InvalidArgumentError(absl::StrCat("annotation ", key, " is not a string"));
    }
    annotations[key] = value.get<std::string>();
  }
  return annotations;
}

// Appends what turns the annotations of the object at `pointer` from `before` into `after`, which
// has all keys of `before`.
absl::Status PatchAnnotations(const Json& object, const std::string& pointer,
                              const std::map<std::string, std::string>& before,
                              const std::map<std::string, std::string>& after, Json& patch) {
  if (after == before) return absl::OkStatus();
  size_t bytes = 0;
  for (const auto& [key, value] : after) bytes += key.size() + value.size();
  if (bytes > kMaxAnnotationBytes) {
    return absl::ResourceExhaustedError("its annotations leave no room for ours");
  }
  const Json* metadata = Find(object, "metadata");
  const Json* annotations = FindPath(object, {"metadata", "annotations"});
  if (metadata == nullptr || metadata->is_null()) {
    patch.push_back(AddOperation(pointer + "/metadata", {{"annotations", after}}));
  } else if (annotations == nullptr || annotations->is_null()) {
    patch.push_back(AddOperation(pointer + "/metadata/annotations", after));
  } else {
    for (const auto& [key, value] : after) {
      const auto old = before.find(key);
      if (old != before.end() && old->second == value) continue;
      patch.push_back(AddOperation(
          absl::StrCat(pointer, "/metadata/annotations/", kube::PointerToken(key)), value));
    }
  }
  return absl::OkStatus();
}

Mutation NotUnderstood(absl::string_view kind, const absl::Status& why) {
  Mutation mutation;
  mutation.outcome = Outcome::kNotUnderstood;
  mutation.warnings.push_back(
      absl::StrCat("railhead: the ", kind, " is admitted unchanged: ", why.message()));
  return mutation;
}

Mutation Finish(Json patch, std::vector<std::string> warnings) {
  Mutation mutation;
  mutation.outcome = patch.empty() ? Outcome::kUnchanged : Outcome::kMutated;
  mutation.patch = std::move(patch);
  mutation.warnings = std::move(warnings);
  return mutation;
}

std::string JobName(const Json& pod) {
  std::string label = StringAt(pod, {"metadata", "labels", kJobNameLabel});
  if (!label.empty()) return label;
  const Json* owners = FindPath(pod, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array()) return "";
  for (const Json& owner : *owners) {
    if (StringAt(owner, {"kind"}) == "Job") return StringAt(owner, {"name"});
  }
  return "";
}

Json Variable(const char* name, std::string value) {
  return {{"name", name}, {"value", std::move(value)}};
}

Json FieldVariable(const char* name, const std::string& field) {
  return {{"name", name},
          {"valueFrom", {{"fieldRef", {{"apiVersion", "v1"}, {"fieldPath", field}}}}}};
}

// What is known only when the gang is placed stands in the pod's annotations before its gate goes.
void AddRankOfGang(const Json& pod, const std::map<std::string, std::string>& annotations,
                   const InjectionConfig& config, std::vector<Json>& variables) {
  const std::string size = gangs::SizeWithoutRanks(pod, config.gang_kinds, annotations);
  if (size.empty()) return;
  const auto told = [](const char* annotation) {
    return absl::StrCat("metadata.annotations['", annotation, "']");
  };
  variables.push_back(FieldVariable("RANK", told(gangs::kRank)));
  variables.push_back(Variable("WORLD_SIZE", size));
  if (gangs::DnsNameOf(pod).empty()) return;
  variables.push_back(FieldVariable("MASTER_ADDR", told(gangs::kMaster)));
  variables.push_back(Variable("MASTER_PORT", absl::StrCat(config.rendezvous_port)));
}

// The variables for one pod, in the order they are written. What cannot be known is left out, with
// a warning where the user would expect it.
std::vector<Json> VariablesFor(const Json& pod,
                               const std::map<std::string, std::string>& annotations,
                               const InjectionConfig& config,
                               const std::map<std::string, std::string>& environment,
                               std::vector<std::string>& warnings) {
  std::vector<Json> variables;
  const std::string job = JobName(pod);
  if (const auto index = annotations.find(kCompletionIndex); index != annotations.end()) {
    const int rank = ParseCount(index->second);
    const auto stamp = annotations.find(kWorldSize);
    const int world = stamp == annotations.end() ? -1 : ParseCount(stamp->second);
    const std::string subdomain = StringAt(pod, {"spec", "subdomain"});
    if (rank < 0) {
      warnings.push_back(
          absl::StrCat("railhead: no RANK: annotation ", kCompletionIndex, " is not a number"));
    } else {
      variables.push_back(Variable("RANK", absl::StrCat(rank)));
      if (world <= rank) {
        warnings.push_back(
            absl::StrCat("railhead: no WORLD_SIZE: annotation ", kWorldSize,
                         stamp == annotations.end()
                             ? " is missing; the Job was created while the operator was away: "
                               "create it again"
                             : " does not fit the rank"));
      } else {
        variables.push_back(Variable("WORLD_SIZE", absl::StrCat(world)));
      }
      if (!job.empty() && !subdomain.empty()) {
        variables.push_back(Variable("MASTER_ADDR", absl::StrCat(job, "-0.", subdomain)));
      }
      variables.push_back(Variable("MASTER_PORT", absl::StrCat(config.rendezvous_port)));
    }
  }
  if (config.gangs) AddRankOfGang(pod, annotations, config, variables);
  if (!job.empty()) variables.push_back(Variable("RAILHEAD_JOB", job));
  variables.push_back(FieldVariable("RAILHEAD_POD", "metadata.name"));
  variables.push_back(FieldVariable("RAILHEAD_NODE", "spec.nodeName"));
  for (const auto& [name, value] : environment) {
    variables.push_back(Variable(name.c_str(), value));
  }
  return variables;
}

bool SameVariable(const Json& entry, const Json& ours) {
  const std::string field = StringAt(ours, {"valueFrom", "fieldRef", "fieldPath"});
  if (field.empty()) {
    return Find(entry, "valueFrom") == nullptr &&
           StringAt(entry, {"value"}) == StringAt(ours, {"value"});
  }
  // The API server may have filled in defaults since.
  return StringAt(entry, {"valueFrom", "fieldRef", "fieldPath"}) == field;
}

// Who has been through the pod before this call.
struct Earlier {
  bool webhook = false;
  bool policy = false;
  const std::map<std::string, std::string>* configured;  // what the policy sets, beside ranks
  const std::set<std::string>* kept;                     // what it found to be the user's
};

enum class Whose {
  kUsers,
  kOurs,
  kPolicys,  // of another value than the pod's profile says
};

// Whose an entry of a container is that has the name of one of our variables.
Whose WhoseIs(const Json& entry, const Json& ours, const Earlier& earlier) {
  if (earlier.webhook) return SameVariable(entry, ours) ? Whose::kOurs : Whose::kUsers;
  const std::string name = StringAt(ours, {"name"});
  if (!earlier.policy || earlier.kept->contains(name)) return Whose::kUsers;
  const auto configured = earlier.configured->find(name);
  if (configured != earlier.configured->end()) {
    if (!SameVariable(entry, Variable(name.c_str(), configured->second))) return Whose::kUsers;
    return SameVariable(entry, ours) ? Whose::kOurs : Whose::kPolicys;
  }
  return IsComputedVariable(name) && SameVariable(entry, ours) ? Whose::kOurs : Whose::kUsers;
}

// Appends what gives one container its variables; notes in `kept` the names that it sets itself.
absl::Status PatchContainer(const RdmaContainer& target, const std::vector<Json>& variables,
                            const Earlier& earlier, std::set<std::string>& kept, Json& patch) {
  const Json* env = Find(*target.container, "env");
  const bool has_list = env != nullptr && !env->is_null();
  if (has_list && !env->is_array()) {
    return absl::InvalidArgumentError(absl::StrCat("spec", target.pointer, "/env is not a list"));
  }
  std::map<std::string, size_t> existing;  // the last of a name counts
  if (has_list) {
    for (size_t i = 0; i < env->size(); ++i) existing[StringAt((*env)[i], {"name"})] = i;
  }
  const std::string path = absl::StrCat("/spec", target.pointer, "/env");
  std::vector<std::pair<size_t, Json>> missing;  // and before which of the entries
  size_t place = 0;
  std::set<std::string> choices(std::begin(kChoices), std::end(kChoices));
  for (const Json& variable : variables) {
    const std::string name = StringAt(variable, {"name"});
    choices.erase(name);
    const auto own = existing.find(name);
    if (own == existing.end()) {
      missing.emplace_back(place, variable);
      continue;
    }
    const Whose whose = WhoseIs((*env)[own->second], variable, earlier);
    if (whose == Whose::kUsers) {
      kept.insert(name);
      continue;
    }
    if (whose == Whose::kPolicys) {
      patch.push_back(AddOperation(absl::StrCat(path, "/", own->second, "/value"),
                                   StringAt(variable, {"value"})));
    }
    // What comes later may refer to this one.
    place = std::max(place, own->second + 1);
  }
  for (const std::string& choice : choices) {
    if (existing.contains(choice)) kept.insert(choice);
  }
  if (missing.empty()) return absl::OkStatus();
  if (!has_list) {
    Json list = Json::array();
    for (auto& [index, variable] : missing) list.push_back(std::move(variable));
    patch.push_back(AddOperation(path, std::move(list)));
    return absl::OkStatus();
  }
  // The last comes first, so that the places of the others stay.
  for (auto entry = missing.rbegin(); entry != missing.rend(); ++entry) {
    patch.push_back(AddOperation(absl::StrCat(path, "/", entry->first), std::move(entry->second)));
  }
  return absl::OkStatus();
}

// What is the same for all containers of a pod: the configured variables, over them those of its
// profile.
struct Site {
  const RailProfile* profile = nullptr;
  std::string stamp;  // "NAME@GENERATION"; empty without a profile
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> reasons;  // of the profile's variables, by name
};

Site SiteOf(const Json& pod, const InjectionConfig& config, const ProfileSet& profiles,
            const std::string& space, std::vector<std::string>& warnings) {
  Site site;
  site.environment = config.environment;
  const ProfileChoice choice =
      ChooseProfile(profiles.profiles, profiles.NamespaceLabels(space), LabelsOf(pod));
  if (!choice.conflict.empty()) warnings.push_back(absl::StrCat("railhead: ", choice.conflict));
  if (choice.profile == nullptr) return site;
  site.profile = choice.profile;
  site.stamp = absl::StrCat(site.profile->name, "@", site.profile->generation);
  ProfileEnvironment environment = EnvironmentOf(*site.profile, profiles.facts);
  for (auto& [name, variable] : environment.variables) {
    site.reasons[name] =
        absl::StrCat(name, "=", variable.value, " (", site.stamp, ": ", variable.reason, ")");
    site.environment[name] = std::move(variable.value);
  }
  for (const std::string& warning : environment.warnings) {
    warnings.push_back(absl::StrCat("railhead: RailProfile ", site.profile->name, ": ", warning));
  }
  return site;
}

// The beginning of a user's text, for a message.
std::string Quoted(absl::string_view text) {
  constexpr size_t kLongest = 40;
  return absl::StrCat("'", text.substr(0, kLongest), text.size() > kLongest ? "..." : "", "'");
}

// The names in the annotation of what was kept.
std::set<std::string> ReadKept(const std::string& annotation, std::vector<std::string>& warnings) {
  std::set<std::string> kept;
  for (absl::string_view name : absl::StrSplit(annotation, ',', absl::SkipWhitespace())) {
    name = absl::StripAsciiWhitespace(name);
    if (IsVariableName(name)) {
      kept.emplace(name);
    } else {
      warnings.push_back(absl::StrCat("railhead: metadata.annotations[", kKept, "]: ", Quoted(name),
                                      " is not the name of a variable"));
    }
  }
  return kept;
}

absl::StatusOr<Mutation> TryMutatePod(const Json& pod, const InjectionConfig& config,
                                      const ProfileSet& profiles, const std::string& space) {
  const Json* spec = Find(pod, "spec");
  if (spec == nullptr || !spec->is_object()) {
    return absl::InvalidArgumentError("spec is not an object");
  }
  const absl::StatusOr<std::vector<RdmaContainer>> targets = FindRdmaContainers(*spec);
  if (!targets.ok()) return targets.status();
  if (targets->empty()) return Mutation();
  absl::StatusOr<std::map<std::string, std::string>> annotations = ReadAnnotations(pod);
  if (!annotations.ok()) return annotations.status();

  std::vector<std::string> warnings;
  Site site = SiteOf(pod, config, profiles, space, warnings);
  std::map<std::string, std::string> wanted = *annotations;
  if (config.gangs) gangs::AddSize(pod, config.gang_kinds, wanted);
  const std::vector<Json> variables = VariablesFor(pod, wanted, config, site.environment, warnings);
  const std::set<std::string> kept_before = ReadKept(wanted[kKept], warnings);
  Earlier earlier{.configured = &config.environment, .kept = &kept_before};
  if (const auto stamp = annotations->find(kInjected); stamp != annotations->end()) {
    earlier.policy = absl::EndsWith(stamp->second, kByPolicy);
    earlier.webhook = !earlier.policy;
  }
  std::set<std::string> kept = kept_before;
  Json patch = Json::array();
  for (const RdmaContainer& target : *targets) {
    if (absl::Status status = PatchContainer(target, variables, earlier, kept, patch);
        !status.ok()) {
      return status;
    }
    const Json* sources = Find(*target.container, "envFrom");
    if (sources != nullptr && sources->is_array() && !sources->empty()) {
      warnings.push_back(absl::StrCat(
          "railhead: container ", StringAt(*target.container, {"name"}),
          ": injected variables win over envFrom; to keep yours, list them under env"));
    }
  }
  if (site.profile != nullptr && !site.profile->shared_memory_size.empty()) {
    if (absl::Status status =
            AddSharedMemory(*spec, *targets, site.profile->shared_memory_size, patch, warnings);
        !status.ok()) {
      return status;
    }
  }
  if (const auto stamp = annotations->find(kProfile);
      stamp != annotations->end() && stamp->second != site.stamp && !earlier.webhook) {
    warnings.push_back(absl::StrCat(
        "railhead: metadata.annotations[", kProfile, "]: ", Quoted(stamp->second),
        " is not for the pod to say: ",
        site.profile == nullptr ? "no RailProfile matches it" : "it gets " + site.stamp));
  }
  if (site.profile != nullptr) wanted[kProfile] = site.stamp;
  if (kept != kept_before) wanted[kKept] = absl::StrJoin(kept, ",");
  if (annotations->count(kKept) == 0 && kept.empty()) {
    wanted.erase(kKept);
  }
  wanted[kInjected] = RAILHEAD_VERSION;
  wanted.emplace("prometheus.io/scrape", "true");
  wanted.emplace("prometheus.io/port", kMetricsPort);
  wanted.emplace("prometheus.io/path", "/metrics");
  if (absl::Status status = PatchAnnotations(pod, "", *annotations, wanted, patch); !status.ok()) {
    return status;
  }
  if (config.gangs) gangs::AddGate(pod, config.gang_kinds, wanted, patch, warnings);
  // Last: what stands before has the places of the init containers as they are.
  if (site.profile != nullptr) {
    if (absl::Status status = AddLibraries(*spec, *targets, site.profile->inject, patch, warnings);
        !status.ok()) {
      return status;
    }
  }
  Mutation mutation = Finish(std::move(patch), std::move(warnings));
  for (const auto& [name, reason] : site.reasons) {
    mutation.reasons.push_back(absl::StrCat(
        reason, kept.count(name) > 0 ? ", but not where a container says otherwise" : ""));
  }
  return mutation;
}

absl::StatusOr<Mutation> TryStampJob(const Json& job, const InjectionConfig& config) {
  const Json* spec = Find(job, "spec");
  const Json* pod_spec = FindPath(job, {"spec", "template", "spec"});
  if (pod_spec == nullptr || !pod_spec->is_object()) {
    return absl::InvalidArgumentError("spec.template.spec is not an object");
  }
  const absl::StatusOr<std::vector<RdmaContainer>> targets = FindRdmaContainers(*pod_spec);
  if (!targets.ok()) return targets.status();
  if (targets->empty()) return Mutation();

  const auto count = [spec](absl::string_view field) {
    const Json* value = Find(*spec, field);
    return value != nullptr && value->is_number_integer() && *value >= 0 && *value <= 1'000'000'000
               ? value->get<int>()
               : 1;
  };
  const int completions = count("completions");
  const int parallelism = count("parallelism");
  std::vector<std::string> warnings;
  const bool indexed = StringAt(*spec, {"completionMode"}) == "Indexed";
  if (!indexed && (completions > 1 || parallelism > 1)) {
    warnings.emplace_back(
        "railhead: no RANK for the pods of this Job: set spec.completionMode to Indexed");
  }
  if (indexed && completions > 1 && StringAt(*pod_spec, {"subdomain"}).empty()) {
    warnings.emplace_back(
        "railhead: no MASTER_ADDR: set spec.template.spec.subdomain to a headless Service");
  }
  if (indexed && parallelism > 0 && parallelism < completions) {  // 0 is a Job that was paused
    warnings.push_back(absl::StrCat("railhead: ranks wait for each other, but only ", parallelism,
                                    " of ", completions, " pods run at once: raise parallelism"));
  }
  const Json& pod_template = *Find(*spec, "template");
  const absl::StatusOr<std::map<std::string, std::string>> annotations =
      ReadAnnotations(pod_template);
  if (!annotations.ok()) return annotations.status();
  std::map<std::string, std::string> wanted = *annotations;
  if (indexed) {
    const auto [stamp, is_new] = wanted.emplace(kWorldSize, absl::StrCat(completions));
    // As of one that was made out of another's YAML.
    if (!is_new && stamp->second != absl::StrCat(completions)) {
      warnings.push_back(absl::StrCat("railhead: spec.template.metadata.annotations[", kWorldSize,
                                      "] is ", stamp->second, " and spec.completions ", completions,
                                      ": leave the annotation out, if WORLD_SIZE is to be that"));
    }
  }
  if (config.gangs) gangs::StampSize(job, config.gang_kinds, parallelism, wanted, warnings);
  Json patch = Json::array();
  if (absl::Status status =
          PatchAnnotations(pod_template, "/spec/template", *annotations, wanted, patch);
      !status.ok()) {
    return status;
  }
  if (config.gangs && wanted.contains(gangs::kGangSize)) {
    gangs::AddLabel(job, config.gang_kinds, patch);
  }
  return Finish(std::move(patch), std::move(warnings));
}

}  // namespace

Mutation MutatePod(const Json& pod, const InjectionConfig& config, const ProfileSet& profiles,
                   const std::string& space) {
  absl::StatusOr<Mutation> mutation = TryMutatePod(pod, config, profiles, space);
  return mutation.ok() ? *std::move(mutation) : NotUnderstood("pod", mutation.status());
}

Mutation StampJob(const Json& job, const InjectionConfig& config) {
  absl::StatusOr<Mutation> mutation = TryStampJob(job, config);
  return mutation.ok() ? *std::move(mutation) : NotUnderstood("Job", mutation.status());
}

}  // namespace railhead::op
