// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/resources.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "kube/elements.h"
#include "operator/objects/pod_bounds.h"
#include "operator/objects/quantity.h"

namespace railhead::op::gangs {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;

constexpr double kThousandths = 1000;
// Two of these can be added without an overflow. In bytes: four petabytes, in thousandths.
constexpr int64_t kMost = int64_t{4'000'000'000'000'000'000};

Resources ReadAmounts(const Json* amounts) {
  Resources read;
  if (amounts == nullptr || !amounts->is_object()) return read;
  for (const auto& [name, value] : amounts->items()) {
    const std::optional<double> amount = verdict::ParseQuantity(value);
    if (!amount || *amount == 0) continue;
    // As a scheduler does: a part of a thousandth is one.
    const double thousandths =
        std::ceil(std::min(*amount * kThousandths, static_cast<double>(kMost)));
    read[name] = static_cast<int64_t>(thousandths);
  }
  return read;
}

void Raise(const Resources& least, Resources& all) {
  for (const auto& [name, amount] : least) {
    int64_t& now = all[name];
    now = std::max(now, amount);
  }
}

int Count(const Resources& resources, absl::FunctionRef<bool(absl::string_view)> counts) {
  int64_t sum = 0;
  for (const auto& [name, amount] : resources) {
    if (counts(name)) sum += amount / static_cast<int64_t>(kThousandths);
  }
  return static_cast<int>(std::min<int64_t>(sum, 1'000'000));
}

}  // namespace

void Add(const Resources& more, Resources& all) {
  for (const auto& [name, amount] : more) {
    int64_t& now = all[name];
    now = std::min(kMost, now + amount);
  }
}

Resources RequestsOf(const Json& spec) {
  Resources running;
  for (const Json& container : kube::ElementsAt(spec, {"containers"})) {
    Add(ReadAmounts(FindPath(container, {"resources", "requests"})), running);
  }
  // A sidecar stays: it runs beside the init containers after it, and beside the containers.
  Resources sidecars;
  Resources starting;
  for (const Json& container : kube::ElementsAt(spec, {"initContainers"})) {
    Resources now = ReadAmounts(FindPath(container, {"resources", "requests"}));
    if (kube::StringAt(container, {"restartPolicy"}) == "Always") {
      Add(now, sidecars);
      Raise(sidecars, starting);
    } else {
      Add(sidecars, now);
      Raise(now, starting);
    }
  }
  Add(sidecars, running);
  Raise(starting, running);
  for (auto& [name, amount] : ReadAmounts(FindPath(spec, {"resources", "requests"}))) {
    running[name] = amount;
  }
  Add(ReadAmounts(Find(spec, "overhead")), running);
  running["pods"] = static_cast<int64_t>(kThousandths);
  return running;
}

void KeepMost(const RdmaResources& rdma, Resources& requests) {
  std::erase_if(requests, [](const auto& entry) { return entry.first.size() > kMostOfAName; });
  if (requests.size() <= kMostResources) return;
  const auto matters = [&rdma](absl::string_view name) {
    return !absl::StrContains(name, '/') || IsGpus(name) || rdma.Contains(name);
  };
  Resources kept;
  for (const bool first : {true, false}) {
    for (const auto& [name, amount] : requests) {
      if (kept.size() == kMostResources) break;
      if (matters(name) == first) kept.emplace(name, amount);
    }
  }
  requests = std::move(kept);
}

Resources AllocatableOf(const Json& node) {
  return ReadAmounts(FindPath(node, {"status", "allocatable"}));
}

bool IsGpus(absl::string_view name) { return absl::EndsWith(name, "/gpu"); }

int HcasIn(const Resources& resources, const RdmaResources& rdma) {
  return Count(resources, [&rdma](absl::string_view name) { return rdma.Contains(name); });
}

int GpusIn(const Resources& resources) { return Count(resources, IsGpus); }

}  // namespace railhead::op::gangs
