// SPDX-License-Identifier: Apache-2.0
//
// Prints the matrix for a test that plays it at a real API server (tests/chart/verdict_test.py):
// one JSON object a line, with what is in the cluster, what the pods answer, and what is to be
// told.
#include <iostream>
#include <vector>

#include "kube/json.h"
#include "operator/profiles/profile.h"
#include "operator/verdict/testing/cases.h"
#include "operator/verdict/testing/page.h"
#include "operator/verdict/testing/scene.h"

namespace railhead::op::verdict::testing {
namespace {

using kube::Json;

Json JsonOf(const std::vector<Expected>& findings) {
  Json list = Json::array();
  for (const Expected& finding : findings) {
    list.push_back({{"pod", finding.pod}, {"reason", finding.reason}, {"says", finding.says}});
  }
  return list;
}

void Print(const Case& one) {
  Scene scene;
  one.spoil(scene);
  Json profiles = Json::array();
  for (const auto& [name, profile] : scene.profiles) {
    profiles.push_back({{"name", name},
                        {"generation", profile.generation},
                        {"fabric", FabricName(profile.fabric)},
                        {"requireRDMA", RequireRdmaName(profile.require_rdma)}});
  }
  Json pages = Json::array();  // null: nobody answers
  for (size_t pod = 0; pod < scene.pods.size(); ++pod) {
    pages.push_back(scene.reporting[pod] ? Json(PageOf(scene.reports[pod])) : Json());
  }
  std::cout << kube::DumpJson({{"name", one.name},
                               {"pods", scene.pods},
                               {"nodes", scene.nodes},
                               {"profiles", profiles},
                               {"pages", pages},
                               {"kind", scene.kind},
                               {"takesTime", one.takes_time},
                               {"within", absl::ToInt64Seconds(one.within)},
                               {"first", JsonOf(one.first)},
                               {"expected", JsonOf(one.expected)}})
            << "\n";
}

}  // namespace
}  // namespace railhead::op::verdict::testing

int main() {
  using railhead::op::verdict::testing::BadCases;
  using railhead::op::verdict::testing::GoodCases;
  for (const auto& one : BadCases()) railhead::op::verdict::testing::Print(one);
  for (const auto& one : GoodCases()) railhead::op::verdict::testing::Print(one);
}
