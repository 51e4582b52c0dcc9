// SPDX-License-Identifier: Apache-2.0
#include "jobs/fields.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kube/elements.h"
#include "kube/object_name.h"

namespace railhead::jobs {

using kube::Json;
using kube::StringAt;

constexpr Cause kNoStamp = {"SizeUnknown", "NoStamp", 0,
                            "no RANK or WORLD_SIZE: annotation railhead.io/world-size is missing",
                            "recreate the Job: it was created while the operator was unavailable"};
constexpr Cause kNotAboveRank = {
    "SizeInvalid", "NotAboveRank", 2,
    "no RANK or WORLD_SIZE: annotation railhead.io/world-size is '$0', not a number greater than "
    "the rank $1",
    "set it to the number of pods, or remove it"};

std::string VariableOf(const Json& pod, absl::string_view name) {
  for (const Json& container : kube::ElementsAt(pod, {"spec", "containers"})) {
    for (const Json& variable : kube::ElementsAt(container, {"env"})) {
      if (StringAt(variable, {"name"}) != name) continue;
      if (std::string value = StringAt(variable, {"value"}); !value.empty()) return value;
    }
  }
  return "";
}

std::optional<int> NumberIn(absl::string_view text, int min, int max) {
  int number = 0;
  if (text.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(text.front())) ||
      !absl::ascii_isdigit(static_cast<unsigned char>(text.back())) ||
      !absl::SimpleAtoi(text, &number) || number < min || number > max) {
    return std::nullopt;
  }
  return number;
}

bool HasAnnotation(const Json& object, absl::string_view name) {
  const Json* annotation = kube::FindPath(object, {"metadata", "annotations", name});
  return annotation != nullptr && annotation->is_string();
}

std::string JobNameOf(const Pod& pod) {
  std::string label = kube::LabelOf(pod.json, "batch.kubernetes.io/job-name");
  if (!label.empty()) return label;
  for (const Json& reference : kube::ElementsAt(pod.json, {"metadata", "ownerReferences"})) {
    if (StringAt(reference, {"kind"}) != "Job") continue;
    if (std::string name = StringAt(reference, {"name"}); kube::IsObjectName(name)) return name;
  }
  return "";
}

std::string HostOf(absl::string_view name, const Json& pod) {
  const std::string subdomain = StringAt(pod, {"spec", "subdomain"});
  return name.empty() || subdomain.empty() ? "" : absl::StrCat(name, ".", subdomain);
}

void TakeSize(const Pod& pod, const Cause& missing, Rank& rank) {
  if (!HasAnnotation(pod.json, kWorldSize)) {
    rank.missing.push_back({&missing});
    return;
  }
  const std::string text = kube::AnnotationOf(pod.json, kWorldSize);
  rank.world = NumberIn(text, rank.rank.value_or(0) + 1, kMostCount);
  if (rank.world) return;
  rank.missing.push_back({&kNotAboveRank, {text, absl::StrCat(rank.rank.value_or(0))}});
}

}  // namespace railhead::jobs
