// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/profile_status.h"

#include <map>
#include <string>

namespace railhead::op {
namespace {

using kube::Json;

std::map<std::string, ProfileCondition> Wanted(const ProfileReport& report) {
  const int64_t generation = report.generation;
  const bool read = report.refusal.empty();
  const bool alone = report.conflict.empty();
  return {{"Accepted",
           {read ? "True" : "False", read ? "Valid" : "Invalid",
            read ? "new pods that match get this generation" : report.refusal, generation, ""}},
          {"Conflicts",
           {alone ? "False" : "True", alone ? "NoConflict" : "SamePriority", report.conflict,
            generation, ""}}};
}

}  // namespace

std::optional<Json> StatusToApply(const StoredProfile& stored, const ProfileReport& report,
                                  absl::Time now) {
  bool same = stored.observed_generation == report.generation;
  Json conditions = Json::array();
  for (auto& [type, wanted] : Wanted(report)) {
    ProfileCondition condition = wanted;
    const auto found = stored.conditions.find(type);
    const bool stays = found != stored.conditions.end() && found->second.status == wanted.status &&
                       !found->second.since.empty();
    condition.since = stays ? found->second.since
                            : absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone());
    same = same && stays && found->second == condition;
    conditions.push_back({{"type", type},
                          {"status", condition.status},
                          {"reason", condition.reason},
                          {"message", condition.message},
                          {"observedGeneration", condition.generation},
                          {"lastTransitionTime", condition.since}});
  }
  if (same) return std::nullopt;
  return Json{{"apiVersion", std::string(kProfileVersion)},
              {"kind", std::string(kProfileKind)},
              {"metadata", {{"name", stored.name}, {"resourceVersion", stored.version}}},
              {"status", {{"observedGeneration", report.generation}, {"conditions", conditions}}}};
}

}  // namespace railhead::op
