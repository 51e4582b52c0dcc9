// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/environment.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "jobs/job.h"
#include "kube/elements.h"
#include "kube/json.h"
#include "operator/admission/gang_gate.h"
#include "operator/admission/lists.h"
#include "operator/objects/names.h"
#include "operator/objects/not_done.h"
#include "operator/objects/pod_rules.h"
#include "operator/objects/variable_name.h"

namespace railhead::op {
namespace {

using kube::Find;
using kube::Json;
using kube::StringAt;

// Variables that disable RDMA, or select HCAs or NCCL's network. Containers that set one are
// recorded even if we would not set it: diagnosis needs to know who set it (verdict/spec_rules.cc).
constexpr const char* kChoices[] = {"NCCL_IB_DISABLE", "NCCL_IB_HCA",       "NCCL_NET",
                                    "NCCL_NET_PLUGIN", "RAILHEAD_FALLBACK", "RAILHEAD_TRANSPORT"};

Json Variable(const char* name, std::string value) {
  return {{"name", name}, {"value", std::move(value)}};
}

Json FieldVariable(const char* name, const std::string& field) {
  return {{"name", name},
          {"valueFrom", {{"fieldRef", {{"apiVersion", "v1"}, {"fieldPath", field}}}}}};
}

// Rank and master of a gang are known when it is placed: the operator writes them into the pod's
// annotations before it removes the gate, or before the containers start.
void AddRankOfGang(const Json& pod, const std::string& size, const InjectionConfig& config,
                   std::vector<Json>& variables) {
  const auto told = [](const char* annotation) {
    return absl::StrCat("metadata.annotations['", annotation, "']");
  };
  variables.push_back(FieldVariable("RANK", told(gangs::kRank)));
  variables.push_back(Variable("WORLD_SIZE", size));
  if (gangs::DnsNameOf(pod).empty()) return;
  variables.push_back(FieldVariable("MASTER_ADDR", told(gangs::kMaster)));
  variables.push_back(Variable("MASTER_PORT", absl::StrCat(config.rendezvous_port)));
}

// Adds RANK, WORLD_SIZE and the address of rank 0 if the pod's kind of job defines them. A rank
// without a size is useless, and may keep a program from running alone.
void AddRankOfJob(const jobs::Rank& rank, const PodAdmission& admission,
                  std::vector<Json>& variables) {
  if (!rank.rank || (!rank.world && rank.world_source.is_null())) return;
  variables.push_back(Variable("RANK", absl::StrCat(*rank.rank)));
  if (rank.world) {
    variables.push_back(Variable("WORLD_SIZE", absl::StrCat(*rank.world)));
  } else {
    variables.push_back({{"name", "WORLD_SIZE"}, {"valueFrom", rank.world_source}});
  }
  if (!rank.master.empty()) variables.push_back(Variable("MASTER_ADDR", rank.master));
  variables.push_back(Variable("MASTER_PORT", absl::StrCat(admission.config.rendezvous_port)));
}

// Returns whether a container already has a rank that is not by its place, or counts ranks itself:
// then it need not wait for another one.
bool HasAnotherRank(const PodAdmission& admission, const std::string& size) {
  const std::vector<std::string>& containers = admission.containers;
  const std::string by_place = absl::StrCat("metadata.annotations['", gangs::kRank, "']");
  return std::any_of(containers.begin(), containers.end(), [&](const std::string& pointer) {
    const auto& env = kube::ElementsAt(*admission.draft.At("/spec" + pointer), {"env"});
    return std::any_of(env.begin(), env.end(), [&](const Json& variable) {
      const std::string name = StringAt(variable, {"name"});
      return (name == "RANK" &&
              StringAt(variable, {"valueFrom", "fieldRef", "fieldPath"}) != by_place) ||
             (name == "WORLD_SIZE" && StringAt(variable, {"value"}) != size);
    });
  });
}

// The variables of the pod's containers, in the order in which they are written. `gang_size`: not
// empty if the rank is that in the gang.
std::vector<Json> VariablesOf(const jobs::Rank& rank, const std::string& gang_size,
                              const PodAdmission& admission) {
  std::vector<Json> variables;
  if (gang_size.empty()) {
    AddRankOfJob(rank, admission, variables);
  } else {
    AddRankOfGang(admission.draft.object(), gang_size, admission.config, variables);
  }
  if (!rank.job.empty()) variables.push_back(Variable("RAILHEAD_JOB", rank.job));
  variables.push_back(FieldVariable("RAILHEAD_POD", "metadata.name"));
  variables.push_back(FieldVariable("RAILHEAD_NODE", "spec.nodeName"));
  for (const auto& [name, value] : admission.settings.environment) {
    variables.push_back(Variable(name.c_str(), value));
  }
  return variables;
}

bool SameVariable(const Json& entry, const Json& ours) {
  const std::string field = StringAt(ours, {"valueFrom", "fieldRef", "fieldPath"});
  if (const Json* source = Find(ours, "valueFrom"); source != nullptr && field.empty()) {
    const Json* other = Find(entry, "valueFrom");
    return other != nullptr && *other == *source;
  }
  if (field.empty()) {
    return Find(entry, "valueFrom") == nullptr &&
           StringAt(entry, {"value"}) == StringAt(ours, {"value"});
  }
  // The API server may have filled in defaults since.
  return StringAt(entry, {"valueFrom", "fieldRef", "fieldPath"}) == field;
}

enum class Whose {
  kUsers,
  kOurs,
  kPolicys,  // from the chart's policy, and not the profile's value
};

// Whose an entry of a container is that has the name of one of our variables.
Whose WhoseIs(const Json& entry, const Json& ours, const PodAdmission& admission) {
  if (admission.earlier == Earlier::kWebhook) {
    return SameVariable(entry, ours) ? Whose::kOurs : Whose::kUsers;
  }
  const std::string name = StringAt(ours, {"name"});
  if (admission.earlier == Earlier::kNothing || admission.kept_before.contains(name)) {
    return Whose::kUsers;
  }
  const auto configured = admission.config.environment.find(name);
  if (configured != admission.config.environment.end()) {
    if (!SameVariable(entry, Variable(name.c_str(), configured->second))) return Whose::kUsers;
    return SameVariable(entry, ours) ? Whose::kOurs : Whose::kPolicys;
  }
  return IsComputedVariable(name) && SameVariable(entry, ours) ? Whose::kOurs : Whose::kUsers;
}

// Returns whether a container sets a WORLD_SIZE that is not ours, such as one that counts GPUs, and
// no RANK: ours counts pods, and the two would contradict each other.
bool CountsRanksItself(const Json* env, const std::map<std::string, size_t>& existing,
                       const std::vector<Json>& variables, const PodAdmission& admission) {
  const auto own = existing.find("WORLD_SIZE");
  if (own == existing.end() || existing.contains("RANK")) return false;
  return std::any_of(variables.begin(), variables.end(), [&](const Json& ours) {
    return StringAt(ours, {"name"}) == "WORLD_SIZE" && !SameVariable((*env)[own->second], ours) &&
           WhoseIs((*env)[own->second], ours, admission) == Whose::kUsers;
  });
}

// Returns whether a container names a plugin of NCCL of its own, whose network has a name that we
// do not know: the NCCL_NET of a profile would exclude it.
bool HasPluginOfItsOwn(const Json* env, const std::map<std::string, size_t>& existing,
                       const std::vector<Json>& variables, const PodAdmission& admission) {
  const auto own = existing.find("NCCL_NET_PLUGIN");
  if (own == existing.end() || admission.config.environment.contains("NCCL_NET")) return false;
  const auto ours = std::find_if(variables.begin(), variables.end(), [](const Json& variable) {
    return StringAt(variable, {"name"}) == "NCCL_NET_PLUGIN";
  });
  return ours == variables.end() || WhoseIs((*env)[own->second], *ours, admission) == Whose::kUsers;
}

// An edit of a container's env: a variable that goes before one of the entries that were there.
struct NewVariable {
  size_t place;
  const Json* variable;
};

// Variables of a rank that a container has, set by the user or by Railhead.
struct RankVariables {
  bool rank = false;
  bool size = false;
  bool address = false;
  bool counts_itself = false;  // its WORLD_SIZE counts something else than our RANK would
};

// Gives the container at `pointer` its variables.
absl::StatusOr<RankVariables> AddVariables(const std::string& pointer,
                                           const std::vector<Json>& variables,
                                           PodAdmission& admission) {
  Draft& draft = admission.draft;
  const std::string path = pointer + "/env";
  const absl::StatusOr<const Json*> env = ListAt(draft, path);
  if (!env.ok()) return env.status();
  std::map<std::string, size_t> existing;  // the last of a name counts
  for (size_t i = 0; *env != nullptr && i < (*env)->size(); ++i) {
    existing[StringAt((**env)[i], {"name"})] = i;
  }
  const bool counts_itself = CountsRanksItself(*env, existing, variables, admission);
  const bool own_plugin = HasPluginOfItsOwn(*env, existing, variables, admission);
  RankVariables has = {.rank = existing.contains("RANK"),
                       .size = existing.contains("WORLD_SIZE"),
                       .address = existing.contains("MASTER_ADDR"),
                       .counts_itself = counts_itself};
  std::vector<NewVariable> missing;
  std::vector<NewVariable> changed;  // of the policy; `place` is where it is
  size_t place = 0;
  std::set<std::string> choices(std::begin(kChoices), std::end(kChoices));
  for (const Json& variable : variables) {
    const std::string name = StringAt(variable, {"name"});
    choices.erase(name);
    has.rank = has.rank || (name == "RANK" && !counts_itself);
    has.size = has.size || name == "WORLD_SIZE";
    has.address = has.address || name == "MASTER_ADDR";
    const auto own = existing.find(name);
    if (own == existing.end()) {
      if (!(counts_itself && name == "RANK") && !(own_plugin && name == "NCCL_NET")) {
        missing.push_back({place, &variable});
      }
      continue;
    }
    const Whose whose = WhoseIs((**env)[own->second], variable, admission);
    if (whose == Whose::kUsers) {
      admission.kept.insert(name);
      continue;
    }
    if (whose == Whose::kPolicys) changed.push_back({own->second, &variable});
    // Later variables may refer to this one.
    place = std::max(place, own->second + 1);
  }
  for (const std::string& choice : choices) {
    if (existing.contains(choice)) admission.kept.insert(choice);
  }
  if (*env == nullptr && !missing.empty()) {
    Json list = Json::array();
    for (const NewVariable& entry : missing) list.push_back(*entry.variable);
    draft.Add(path, std::move(list));
    return has;
  }
  for (const NewVariable& entry : changed) {
    draft.Add(absl::StrCat(path, "/", entry.place, "/value"), StringAt(*entry.variable, {"value"}));
  }
  // The last comes first, so that the places of the others stay.
  for (auto entry = missing.rbegin(); entry != missing.rend(); ++entry) {
    draft.Add(absl::StrCat(path, "/", entry->place), *entry->variable);
  }
  return has;
}

// Notes which variables of a rank the container lacks.
void NoteWhatIsMissing(const std::string& container, const RankVariables& has,
                       const jobs::Rank& rank, PodAdmission& admission) {
  if (has.counts_itself) {
    NoteNotDone(NoteOf(NotDone::kOwnWorldSize, Cause::kOwnWorldSize, {container}), admission);
    return;
  }
  if (has.rank && has.size) {
    if (has.address || !rank.rank || rank.world == 1) return;
    NoteNotDone(NoteOf(NotDone::kNoAddress, Cause::kNoSubdomain), admission);
    return;
  }
  if (has.rank != has.size && !rank.rank) {
    NoteNotDone(
        NoteOf(NotDone::kHalfSet, has.rank ? Cause::kRankAlone : Cause::kSizeAlone, {container}),
        admission);
  }
  for (const jobs::NoRank& missing : rank.missing) NoteNotDone(NoteOf(missing), admission);
}

// Warns of a container that disables RDMA although its profile requires it: its job would fail.
void WarnOfRdmaSwitchedOff(const Json& container, PodAdmission& admission) {
  const RailProfile* profile = admission.settings.profile;
  if (profile == nullptr || profile->require_rdma != RequireRdma::kFail ||
      profile->fabric == Fabric::kIwarp) {
    return;
  }
  const auto& env = kube::ElementsAt(container, {"env"});
  const bool off = std::any_of(env.begin(), env.end(), [](const Json& variable) {
    return StringAt(variable, {"name"}) == "NCCL_IB_DISABLE" &&
           StringAt(variable, {"value"}) == "1";
  });
  if (!off) return;
  admission.draft.Warn(
      absl::StrCat("container ", StringAt(container, {"name"}),
                   " sets NCCL_IB_DISABLE=1, and RailProfile ", profile->name,
                   " has requireRDMA: fail, so NCCL will fail; remove the variable, or use a "
                   "profile that allows TCP"));
}

// Gives the container the sentences. A value that an earlier call wrote may be outdated.
absl::Status TellContainer(const std::string& pointer, const std::string& text,
                           PodAdmission& admission) {
  const std::string path = absl::StrCat("/spec", pointer, "/env");
  const absl::StatusOr<const Json*> env = ListAt(admission.draft, path);
  if (!env.ok()) return env.status();
  const size_t size = *env == nullptr ? 0 : (*env)->size();
  for (size_t i = 0; i < size; ++i) {
    const Json& variable = (**env)[i];
    if (StringAt(variable, {"name"}) != kNotDoneVariable) continue;
    const bool is_ours = admission.earlier != Earlier::kNothing && variable.contains("value");
    if (is_ours && StringAt(variable, {"value"}) != text) {
      admission.draft.Add(absl::StrCat(path, "/", i, "/value"), text);
    }
    return absl::OkStatus();
  }
  if (text.empty()) return absl::OkStatus();
  return admission.draft.Append(path, Variable(kNotDoneVariable, text));
}

}  // namespace

absl::Status AddEnvironment(PodAdmission& admission) {
  const jobs::Rank rank = jobs::RankOf(admission.draft.object());
  std::string gang_size;
  if (admission.config.gangs) {
    gang_size = SizeOfRankedGang(admission.draft.object(), admission.config.gang_kinds,
                                 admission.annotations, rank);
  }
  if (!gang_size.empty() && jobs::IsInSchedulingGroup(admission.draft.object())) {
    if (HasAnotherRank(admission, gang_size)) {
      gang_size.clear();
    } else {
      admission.waits_for_rank = true;
      // Not that of another pod, whose YAML this one was made out of.
      admission.annotations[gangs::kRank] = "";
    }
  }
  const std::vector<Json> variables = VariablesOf(rank, gang_size, admission);
  for (const std::string& pointer : admission.containers) {
    const absl::StatusOr<RankVariables> has = AddVariables("/spec" + pointer, variables, admission);
    if (!has.ok()) return has.status();
    const Json& container = *admission.draft.At("/spec" + pointer);
    const std::string name = StringAt(container, {"name"});
    // Init containers and sidecars are not ranks.
    if (!absl::StartsWith(pointer, "/init")) NoteWhatIsMissing(name, *has, rank, admission);
    WarnOfRdmaSwitchedOff(container, admission);
    if (!kube::ElementsAt(container, {"envFrom"}).empty()) {
      admission.draft.Warn(absl::StrCat(
          "container ", name,
          ": injected variables override envFrom; to keep your own, list them under env"));
    }
  }
  for (const jobs::NoRank& missing : rank.missing) {
    const NotDoneNote note = NoteOf(missing);
    if (note.reason == NotDone::kGroupUnknown) NoteNotDone(note, admission);
  }
  return absl::OkStatus();
}

absl::Status AddNotDone(PodAdmission& admission) {
  const std::string words = EncodeNotDone(admission.not_done);
  const auto before = admission.annotations.find(kNotDone);
  if (words.empty() && (before == admission.annotations.end() || before->second.empty())) {
    return absl::OkStatus();
  }
  // Empty: that of another pod, whose YAML this one was made out of.
  admission.annotations[kNotDone] = words;
  const std::string text = FormatNotDone(admission.not_done);
  for (const std::string& pointer : admission.containers) {
    if (absl::Status told = TellContainer(pointer, text, admission); !told.ok()) return told;
  }
  return absl::OkStatus();
}

}  // namespace railhead::op
