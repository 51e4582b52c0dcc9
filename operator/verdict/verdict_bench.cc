// SPDX-License-Identifier: Apache-2.0
//
// What the verdict costs at a large cluster: a judgement of the largest job, and the memory that is
// kept of all pods and their reports. Prints Markdown.
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kube/json.h"
#include "operator/verdict/judge.h"
#include "operator/verdict/node_facts.h"
#include "operator/verdict/pod_facts.h"
#include "operator/verdict/testing/scene.h"

namespace railhead::op::verdict {
namespace {

using kube::Json;
using testing::Scene;
using Clock = std::chrono::steady_clock;

constexpr int kNodes = 5000;
constexpr int kPods = 20000;
constexpr int kPodsOfAJob = 2048;
constexpr int kTimes = 5;

double MiB() { return static_cast<double>(mallinfo2().uordblks) / (1 << 20); }

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// As the collector keeps it.
class Kept {
 public:
  JudgedPod Keep(const Json& pod, RuntimeReport report) {
    JudgedPod judged;
    PodFacts facts = *PodFactsOf(pod, RdmaResources());
    PodTerms terms = *facts.terms;
    terms.containers = containers_.Share(terms.containers);
    facts.terms = terms_.Share(std::move(terms));
    for (RankReport& rank : report.ranks) {
      rank.given = given_.Share(rank.given);
      rank.used = used_.Share(rank.used);
    }
    judged.pod = std::make_shared<const PodFacts>(std::move(facts));
    judged.report = std::make_shared<const RuntimeReport>(std::move(report));
    return judged;
  }

 private:
  ListPool<ContainerFacts> containers_;
  ValuePool<PodTerms> terms_;
  ListPool<GivenRail> given_;
  ListPool<UsedRail> used_;
};

Json PodNumber(const Scene& scene, int number) {
  Json pod = scene.pods[0];
  const std::string rank = absl::StrCat(number % kPodsOfAJob);
  pod["metadata"]["name"] = absl::StrCat("training-run-of-a-team-", rank, "-x7k2p");
  pod["metadata"]["uid"] = absl::StrCat("01234567-89ab-cdef-0123-4567", 10000000 + number);
  pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = rank;
  pod["metadata"]["ownerReferences"] = Json::array(
      {{{"apiVersion", "batch/v1"},
        {"kind", "Job"},
        {"name", "training-run-of-a-team"},
        {"uid", absl::StrCat("01234567-89ab-cdef-0123-job", number / kPodsOfAJob, "00000000")},
        {"controller", true}}});
  pod["spec"]["nodeName"] = absl::StrCat("node-", number % kNodes);
  pod["spec"]["containers"][0]["env"][0]["value"] = rank;
  return pod;
}

void Run() {
  const Scene scene;
  double before = MiB();
  Cluster::Nodes nodes;
  for (int i = 0; i < kNodes; ++i) {
    nodes[absl::StrCat("node-", i)] =
        std::make_shared<const NodeFacts>(NodeFactsOf(scene.nodes[0], RdmaResources()));
  }
  const double of_nodes = MiB() - before;
  Clock::time_point begin = Clock::now();
  const Cluster cluster(nodes, scene.profiles);
  const double made = Milliseconds(Clock::now() - begin);

  before = MiB();
  Kept kept;
  std::vector<JudgedPod> pods;
  for (int i = 0; i < kPods; ++i) {
    RuntimeReport report = scene.reports[0];
    report.ranks[0].rank = i % kPodsOfAJob;
    report.ranks[0].job = "training-run-of-a-team";
    report.ranks[0].start->world_size = kPodsOfAJob;
    report.ranks[0].start->pod = absl::StrCat("training-run-of-a-team-", i % kPodsOfAJob, "-x7k2p");
    pods.push_back(kept.Keep(PodNumber(scene, i), std::move(report)));
  }
  const double of_pods = MiB() - before;
  const JobFacts job = {{pods.begin(), pods.begin() + kPodsOfAJob}};
  begin = Clock::now();
  size_t findings = 0;
  for (int i = 0; i < kTimes; ++i) findings += Judge(job, cluster).size();
  std::printf("| | | |\n|---|---|---|\n");
  std::printf("| kept of %d nodes | %.1f | MiB |\n", kNodes, of_nodes);
  std::printf("| kept of %d pods with 8 rails that report | %.1f | MiB |\n", kPods, of_pods);
  std::printf("| what is common to all pods, found once | %.1f | ms |\n", made);
  std::printf("| a job of %d pods judged (%zu findings) | %.1f | ms |\n", kPodsOfAJob,
              findings / kTimes, Milliseconds(Clock::now() - begin) / kTimes);
}

}  // namespace
}  // namespace railhead::op::verdict

int main() { railhead::op::verdict::Run(); }
