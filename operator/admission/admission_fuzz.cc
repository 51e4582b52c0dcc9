// SPDX-License-Identifier: Apache-2.0
//
// A text of YAML or JSON documents is a cluster (RailProfiles, Namespaces, Nodes) and the pods and
// Jobs that come to it, as review bodies or plainly. Whatever it is: profiles are refused with the
// field's path or read the same way twice, their status is told once, and each patch applies, only
// adds, and is complete after one call.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kube/http/admission.h"
#include "kube/json.h"
#include "kube/yaml.h"
#include "operator/admission/mutation.h"
#include "operator/profiles/profile_set.h"
#include "operator/profiles/profile_status.h"
#include "operator/profiles/stored_profile.h"

namespace railhead::op {
namespace {

using kube::Json;

void Require(bool condition) {
  if (!condition) std::abort();
}

// One profile is always there, so that pods have something to get.
ProfileSet Start() {
  ProfileSet set;
  set.profiles.resize(1);
  RailProfile& profile = set.profiles.front();
  profile.name = "all";
  profile.namespaces.expressions = {
      {"kubernetes.io/metadata.name", LabelSelector::Operator::kExists, {}}};
  profile.shared_memory_size = "1Gi";
  profile.inject = {"a", "b", "/l/libnccl-net-x.so"};
  profile.settings = {{"nccl.trafficClass", "106"}, {"nccl.socketInterface", "eth0"}};
  return set;
}

// What is told of a profile is told once.
void TellStatus(const Json& document) {
  const StoredProfile stored = ReadStoredProfile(document);
  Require(stored.profile.has_value() == stored.refusal.empty());
  const ProfileReport report = {stored.generation, stored.refusal, ""};
  const std::optional<Json> told = StatusToApply(stored, report, absl::UnixEpoch());
  if (!told) return;
  Json after = document;
  after["status"] = (*told)["status"];
  Require(!StatusToApply(ReadStoredProfile(after), report, absl::Now()).has_value());
}

void AddProfiles(const std::vector<Json>& documents, ProfileSet& set) {
  for (const Json& document : documents) {
    if (document.is_object()) TellStatus(document);
    const ProfileSet before = set;
    const absl::Status added = AddObject(document, set);
    Require(added.ok() || absl::IsInvalidArgument(added));
    if (kube::StringAt(document, {"kind"}) != kProfileKind) continue;
    const absl::StatusOr<RailProfile> once = ParseRailProfile(document);
    const absl::StatusOr<RailProfile> twice = ParseRailProfile(document);
    Require(once.status() == twice.status() && (!once.ok() || *once == *twice));
    if (added.ok()) {
      Require(once.ok() && set.profiles.size() == before.profiles.size() + 1);
    } else {
      Require(absl::StrContains(added.message(), ": ") && set == before);
    }
  }
}

void Admit(const Json& object, const ProfileSet& set, const std::string& space) {
  const InjectionConfig config = {.environment = {{"NCCL_DEBUG", "WARN"}},
                                  .gangs = true,
                                  .gang_kinds = {"JobSet", "LeaderWorkerSet", "PyTorchJob"}};
  const auto check = [&object](const auto& mutate) {
    const Mutation once = mutate(object);
    Require((once.outcome == Outcome::kMutated) == !once.patch.empty());
    for (const Json& operation : once.patch) Require(operation["op"] == "add");
    Require(mutate(object.patch(once.patch)).patch.empty());
  };
  check([&](const Json& in) { return MutatePod(in, config, set, space); });
  check([&](const Json& in) { return StampJob(in, config); });
}

void Run(absl::string_view text) {
  ProfileSet set = Start();
  if (const absl::StatusOr<kube::AdmissionRequest> review = kube::DecodeAdmissionReview(text);
      review.ok()) {
    Admit(review->object, set, review->space);
  }
  const absl::StatusOr<std::vector<Json>> documents = kube::ParseYaml(text);
  if (!documents.ok()) return;
  AddProfiles(*documents, set);
  for (const Json& document : *documents) {
    Admit(document, set, kube::StringAt(document, {"metadata", "namespace"}));
  }
}

}  // namespace
}  // namespace railhead::op

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::op::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
