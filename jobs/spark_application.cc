// SPDX-License-Identifier: Apache-2.0
//
// Spark on Kubernetes, also of a SparkApplication. The driver's pod owns those of its executors.
#include "jobs/fields.h"
#include "jobs/kinds.h"
#include "kube/elements.h"

namespace railhead::jobs {
namespace {

constexpr Cause kBySpark = {
    "KindHasNoRanks", "BySpark", 0,
    "no RANK: Spark starts and numbers the ranks inside its executors",
    "let TorchDistributor start them, or set RANK, WORLD_SIZE and MASTER_ADDR in the task of each"};
constexpr const Cause* kCausesOfSpark[] = {&kBySpark};

std::optional<Rank> RankInSparkApplication(const Pod& pod) {
  if (kube::LabelOf(pod.json, "spark-app-selector").empty()) return std::nullopt;
  return Rank{.missing = {{&kBySpark}}};
}

}  // namespace

constexpr Kind kSparkApplication = {
    .name = "SparkApplication", .rank = RankInSparkApplication, .causes = kCausesOfSpark};

}  // namespace railhead::jobs
