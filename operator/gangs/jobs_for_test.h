// SPDX-License-Identifier: Apache-2.0
//
// A cluster of two spines, jobs that wait for its nodes, and the options of a decision at some
// time, for tests of the planner.
#ifndef RAILHEAD_OPERATOR_GANGS_JOBS_FOR_TEST_H_
#define RAILHEAD_OPERATOR_GANGS_JOBS_FOR_TEST_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "operator/gangs/planner.h"
#include "operator/gangs/testing/small_cluster.h"

namespace railhead::op::gangs {

// Two spines of two leaves of four nodes each: node n5 is in spine s0 and leaf l1.
inline testing::SmallCluster TwoSpines() {
  testing::SmallCluster cluster;
  for (int i = 0; i < 16; ++i) {
    cluster.AddNode(absl::StrCat("n", i / 10, i % 10), absl::StrCat("s", i / 8),
                    absl::StrCat("l", i / 4));
  }
  return cluster;
}

inline void AddJob(testing::SmallCluster& cluster, const std::string& name, int pods,
                   testing::PodSpec spec = {}) {
  for (int i = 0; i < pods; ++i) {
    spec.name = absl::StrCat(name, "-", i);
    spec.gang = "true";
    spec.owner = name;
    spec.size = pods;
    spec.index = i;
    cluster.AddPod(spec);
  }
}

inline std::vector<std::string> NodesOf(const Decision& decision) {
  std::vector<std::string> nodes;
  for (const Assignment& assignment : decision.assignments) nodes.push_back(assignment.node);
  return nodes;
}

inline DecideOptions At(int second, absl::Duration reserve_after = absl::InfiniteDuration()) {
  DecideOptions options;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, "2026-01-01T00:00:00Z", &options.now, nullptr));
  options.now += absl::Seconds(second);
  options.reserve_after = reserve_after;
  return options;
}

inline void Annotate(testing::SmallCluster& cluster, const std::string& job, const char* name,
                     const char* value) {
  for (auto& [pod, object] : cluster.pods) {
    if (pod.starts_with(job + "-")) object["metadata"]["annotations"][name] = value;
  }
}

// As a scheduler shows that nothing of the first `nodes` nodes is free.
inline void Fill(testing::SmallCluster& cluster, int nodes) {
  for (int i = 0; i < nodes; ++i) {
    const std::string name = absl::StrCat("n", i / 10, i % 10);
    cluster.AddPod({.name = "on-" + name});
    cluster.pods["on-" + name]["spec"]["nodeName"] = name;
  }
}

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_JOBS_FOR_TEST_H_
