// SPDX-License-Identifier: Apache-2.0
//
// Agent and operator name the same job for a pod: pods whose ranks the operator counts together get
// one secret from the agent (jobs::IdentityOf), and those of other jobs get another one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "jobs/job.h"
#include "jobs/kinds.h"
#include "jobs/labels.h"
#include "kube/json.h"
#include "kube/yaml.h"
#include "operator/cluster/stored_pod.h"
#include "operator/collector/job_index.h"
#include "operator/gangs/gang.h"
#include "operator/verdict/pod_facts.h"

namespace railhead::op {
namespace {

using kube::Json;
using kube::StringAt;

// The job of a pod for each component. Empty: it is no job there.
struct Names {
  std::string secret;   // the agent's
  std::string program;  // the pods with which it has ranks: admission's RAILHEAD_JOB and size
  std::string gang;
  std::string report;  // the collector's, if its pods are compared as one program
  std::string whole;   // key of the job that the pod names
};

Names NamesOf(const Json& pod) {
  Names names;
  names.secret = jobs::IdentityOf(pod).value_or("");
  const jobs::Rank rank = jobs::RankOf(pod);
  if (rank.rank && (rank.world || !rank.world_source.is_null())) {
    names.program = absl::StrCat(rank.job, " of ", rank.world.value_or(0));
  }
  const auto stored = gangs::ReadStoredPod(pod);
  if (stored && stored->member) names.gang = gangs::GangKeyOf(*stored);
  const auto facts = verdict::PodFactsOf(pod, {});
  if (facts && facts->rank && JobOf(*facts).one_program) names.report = JobOf(*facts).Key();
  if (const auto job = jobs::JobOf(pod)) names.whole = job->whole;
  return names;
}

std::vector<Json> Workloads() {
  std::vector<Json> pods;
  for (const auto& entry :
       std::filesystem::directory_iterator(RAILHEAD_SOURCE_DIR "/tests/workloads")) {
    if (entry.path().extension() != ".yaml" || entry.path().stem() == "operator") continue;
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto documents = kube::ParseYaml(text, entry.path().string());
    EXPECT_TRUE(documents.ok()) << documents.status();
    if (!documents.ok()) continue;
    std::copy_if(documents->begin(), documents->end(), std::back_inserter(pods),
                 [](const Json& object) { return StringAt(object, {"kind"}) == "Pod"; });
  }
  return pods;
}

// Keys of secrets derive from these texts: another text is another key for the pods of a job that
// runs.
TEST(SameJobTest, EveryWorkloadKeepsItsIdentity) {
  std::map<std::string, std::string> identities;
  for (const Json& pod : Workloads()) {
    identities[StringAt(pod, {"metadata", "name"})] = jobs::IdentityOf(pod).value_or("-");
  }
  const std::map<std::string, std::string> expected = {
      {"index-x-abcde", "controller/u1"},
      {"zero-0-abcde", "controller/u2"},
      {"orphan-1-abcde", "-"},
      {"vllm-0-7", "LeaderWorkerSet/vllm/"},
      {"pax-worker-5", "controller/u4"},
      {"keras-worker-0", "controller/u5"},
      {"long-0-abcde", "controller/u6"},
      {"bert-3-x7k2p", "controller/u1"},
      {"unstamped-1-abcde", "controller/u2"},
      {"copied-5-abcde", "controller/u3"},
      {"torchrun-1-abcde", "controller/u4"},
      {"sweep-7h2kq", "controller/u1"},
      {"half-7h2kq", "controller/u2"},
      {"whole-7h2kq", "controller/u3"},
      {"llama-slice-2-1-abcde", "JobSet/llama/u1"},
      {"alone-slice-2-1-abcde", "JobSet/alone/"},
      {"half-slice-2-1-abcde", "JobSet/half/"},
      {"gpt-worker-1", "controller/u1"},
      {"elastic-worker-1", "controller/u2"},
      {"pax-worker-2", "controller/u3"},
      {"keras-worker-1", "controller/u4"},
      {"keras-ps-0", "controller/u4"},
      {"ernie-worker-1", "controller/u5"},
      {"trees-worker-0", "controller/u6"},
      {"vllm-1-2", "LeaderWorkerSet/vllm/"},
      {"nccl-tests-launcher-abcde", "MPIJob/nccl-tests/"},
      {"passing-launcher-abcde", "MPIJob/passing/"},
      {"nccl-tests-worker-1", "MPIJob/nccl-tests/"},
      {"pi-launcher-x7k2p", "MPIJob/pi/"},
      {"tune-gpu-worker-abcde", "controller/u1"},
      {"etl-exec-1", "controller/u5"},
      {"pipeline-train-12345", "controller/u2"},
      {"predictor-6c9f-abcde", "-"},
      {"debug", "-"},
      {"member-0", "gang/team"},
      {"flow-actor-0", "controller/u4"},
      {"windows", "-"},
      {"web", "-"},
      {"mixtral-2-abcde", "controller/u1"},
      {"plain-2-abcde", "controller/u2"},
      {"worker-a", "gang/true"},
      {"actor-a", "gang/true"},
      {"hostdev-1-abcde", "controller/u1"},
      {"dra-1-abcde", "controller/u2"},
      {"efa", "-"},
      {"ring-2", "controller/u1"},
      {"told-2", "controller/u2"},
      {"tune-node-0-1-abcde", "JobSet/tune/"},
      {"sft-launcher-0-0-abcde", "JobSet/sft/"},
      {"passes-launcher-0-0-abcde", "JobSet/passes/"},
      {"sft-node-0-1-abcde", "JobSet/sft/"},
      {"bloom-worker-1", "controller/u1"},
      {"bare-worker-1", "controller/u2"}};
  EXPECT_EQ(identities, expected);
}

TEST(SameJobTest, WorkloadsAboveControllersHaveOneNameInAgentAndOperator) {
  int above = 0;
  for (const Json& pod : Workloads()) {
    const auto job = jobs::JobOf(pod);
    if (!job || !job->kind->identity(pod)->above_controllers) continue;
    ++above;
    EXPECT_THAT(*jobs::IdentityOf(pod), ::testing::StartsWith(job->whole));
  }
  EXPECT_GE(above, 10);
}

using Random = std::mt19937;

int Draw(int most, Random& random) { return std::uniform_int_distribution<int>(0, most)(random); }

Json OwnerJson(const std::string& kind, const std::string& name) {
  return {{"apiVersion", kind == "Job" ? "batch/v1" : "example.com/v1"},
          {"kind", kind},
          {"name", name},
          {"uid", absl::StrCat("uid-", kind, "-", name)},
          {"controller", true}};
}

Json PodOf(const std::string& name, const Json& owner) {
  Json pod = Json::parse(R"({"metadata": {"namespace": "team", "labels": {}, "annotations": {}},
    "spec": {"subdomain": "net", "containers": [
      {"name": "main", "env": [], "resources": {"limits": {"rdma/hca": "1"}}}]}})");
  pod["metadata"]["name"] = name;
  pod["metadata"]["uid"] = "uid-pod-" + name;
  if (!owner.is_null()) pod["metadata"]["ownerReferences"] = {owner};
  return pod;
}

void SetVariable(const char* name, const std::string& value, Json& pod) {
  pod["spec"]["containers"][0]["env"].push_back({{"name", name}, {"value", value}});
}

// A job as its controller makes its pods, and the identity of all of them.
struct GeneratedJob {
  std::string kind;
  std::string identity;  // empty: the pods are not a job
  std::vector<Json> pods;
};

void MakeIndexed(int index, int size, Json& pod) {
  pod["metadata"]["annotations"][jobs::kCompletionIndex] = absl::StrCat(index);
  pod["metadata"]["annotations"][jobs::kWorldSize] = absl::StrCat(size);
}

GeneratedJob BatchJob(const std::string& name, Random& random) {
  const Json owner = OwnerJson("Job", name);
  GeneratedJob job = {"Job", absl::StrCat("controller/", StringAt(owner, {"uid"})), {}};
  const int size = 1 + Draw(3, random);
  for (int index = 0; index < size; ++index) {
    Json& pod = job.pods.emplace_back(PodOf(absl::StrCat(name, "-", index), owner));
    pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = name;
    MakeIndexed(index, size, pod);
  }
  return job;
}

// Several parts, of several Jobs each.
GeneratedJob JobSet(const std::string& name, Random& random) {
  const std::string uid = Draw(3, random) == 0 ? "" : "uid-set-" + name;
  GeneratedJob set = {"JobSet", absl::StrCat("JobSet/", name, "/", uid), {}};
  for (const char* part : {"workers", "eval"}) {
    const int jobs = 1 + Draw(2, random);
    const int size = 1 + Draw(2, random);
    for (int i = 0; i < jobs * size; ++i) {
      const std::string job = absl::StrCat(name, "-", part, "-", i / size);
      Json& pod =
          set.pods.emplace_back(PodOf(absl::StrCat(job, "-", i % size), OwnerJson("Job", job)));
      pod["metadata"]["labels"] = {
          {"batch.kubernetes.io/job-name", job},
          {"jobset.sigs.k8s.io/jobset-name", name},
          {"jobset.sigs.k8s.io/replicatedjob-name", part},
          {"jobset.sigs.k8s.io/replicatedjob-replicas", absl::StrCat(jobs)},
          {"jobset.sigs.k8s.io/job-index", absl::StrCat(i / size)}};
      if (!uid.empty()) pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-uid"] = uid;
      MakeIndexed(i % size, jobs * size, pod);
      pod["metadata"]["annotations"][jobs::kGangSize] = absl::StrCat(jobs * size);
    }
  }
  return set;
}

// The leaders have one controller, and the workers of a group another.
GeneratedJob LeaderWorkerSet(const std::string& name, Random& random) {
  GeneratedJob set = {"LeaderWorkerSet", absl::StrCat("LeaderWorkerSet/", name, "/"), {}};
  const int size = 1 + Draw(3, random);
  for (int group = 0; group < 2; ++group) {
    for (int index = 0; index < size; ++index) {
      const std::string leader = absl::StrCat(name, "-", group);
      Json& pod =
          set.pods.emplace_back(PodOf(index == 0 ? leader : absl::StrCat(leader, "-", index),
                                      OwnerJson("StatefulSet", index == 0 ? name : leader)));
      const std::string prefix = "leaderworkerset.sigs.k8s.io/";
      pod["metadata"]["labels"] = {{prefix + "name", name},
                                   {prefix + "group-index", absl::StrCat(group)},
                                   {prefix + "worker-index", absl::StrCat(index)}};
      pod["metadata"]["annotations"][prefix + "size"] = absl::StrCat(size);
    }
  }
  return set;
}

// One kind of Kubeflow's training operator.
GeneratedJob Kubeflow(const std::string& kind, const std::string& controller,
                      const std::string& name, Random& random) {
  const Json owner = OwnerJson(kind, name);
  const bool of_mpi_operator = controller == "mpi-operator";
  GeneratedJob job = {kind,
                      of_mpi_operator ? absl::StrCat("MPIJob/", name, "/")
                                      : absl::StrCat("controller/", StringAt(owner, {"uid"})),
                      {}};
  const int size = 1 + Draw(3, random);
  for (int index = 0; index < size; ++index) {
    const bool launcher = of_mpi_operator && index == 0;
    Json& pod =
        job.pods.emplace_back(PodOf(absl::StrCat(name, "-worker-", index),
                                    launcher ? OwnerJson("Job", name + "-launcher") : owner));
    pod["metadata"]["labels"] = {{"training.kubeflow.org/job-name", name},
                                 {"training.kubeflow.org/operator-name", controller},
                                 {"training.kubeflow.org/replica-type", "worker"},
                                 {"training.kubeflow.org/replica-index", absl::StrCat(index)}};
    const std::string count = absl::StrCat(size);
    const std::string rank = absl::StrCat(index);
    if (kind == "JAXJob") SetVariable("NUM_PROCESSES", count, pod);
    if (kind == "JAXJob") SetVariable("PROCESS_ID", rank, pod);
    if (kind == "PaddleJob") SetVariable("PADDLE_NNODES", count, pod);
    if (kind == "PyTorchJob" || kind == "XGBoostJob") SetVariable("WORLD_SIZE", count, pod);
    if (kind == "PyTorchJob" || kind == "XGBoostJob") SetVariable("RANK", rank, pod);
    if (kind == "TFJob") {
      const Json config = {{"cluster", {{"worker", std::vector<std::string>(size, "host:1")}}},
                           {"task", {{"type", "worker"}, {"index", index}}}};
      SetVariable("TF_CONFIG", config.dump(), pod);
    }
  }
  return job;
}

GeneratedJob Volcano(const std::string& name, Random& random) {
  Json owner = OwnerJson("Job", name);
  owner["apiVersion"] = "batch.volcano.sh/v1alpha1";
  GeneratedJob job = {"Volcano", absl::StrCat("controller/", StringAt(owner, {"uid"})), {}};
  const int size = 1 + Draw(3, random);
  for (int index = 0; index < size; ++index) {
    Json& pod = job.pods.emplace_back(PodOf(absl::StrCat(name, "-task-", index), owner));
    pod["metadata"]["annotations"] = {{"volcano.sh/job-name", name},
                                      {"volcano.sh/task-spec", "task"},
                                      {jobs::kWorldSize, absl::StrCat(size)}};
    SetVariable("VC_TASK_INDEX", absl::StrCat(index), pod);
  }
  return job;
}

GeneratedJob StatefulSet(const std::string& name, Random& random) {
  const Json owner = OwnerJson("StatefulSet", name);
  GeneratedJob job = {"StatefulSet", absl::StrCat("controller/", StringAt(owner, {"uid"})), {}};
  const int size = 1 + Draw(3, random);
  for (int index = 0; index < size; ++index) {
    Json& pod = job.pods.emplace_back(PodOf(absl::StrCat(name, "-", index), owner));
    pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = absl::StrCat(index);
    pod["metadata"]["annotations"][jobs::kWorldSize] = absl::StrCat(size);
  }
  return job;
}

// Kinds of which the controller is all that their pods have in common.
GeneratedJob Controlled(const std::string& kind, const Json& labels, const std::string& name,
                        Random& random) {
  const Json owner = OwnerJson(kind, name);
  GeneratedJob job = {kind, absl::StrCat("controller/", StringAt(owner, {"uid"})), {}};
  if (kind == "ReplicaSet" || kind == "ReplicationController" || kind == "DaemonSet" ||
      kind == "Node") {
    job.identity = "";
  }
  for (int index = Draw(3, random); index >= 0; --index) {
    Json& pod = job.pods.emplace_back(PodOf(absl::StrCat(name, "-", index), owner));
    pod["metadata"]["labels"] = labels;
  }
  return job;
}

using Generator = GeneratedJob (*)(const std::string& name, Random& random);

constexpr Generator kGenerators[] = {
    BatchJob,
    JobSet,
    LeaderWorkerSet,
    Volcano,
    StatefulSet,
    [](const std::string& name, Random& random) {
      return Kubeflow("JAXJob", "jaxjob-controller", name, random);
    },
    [](const std::string& name, Random& random) {
      return Kubeflow("PaddleJob", "paddlejob-controller", name, random);
    },
    [](const std::string& name, Random& random) {
      return Kubeflow("PyTorchJob", "pytorchjob-controller", name, random);
    },
    [](const std::string& name, Random& random) {
      return Kubeflow("TFJob", "tfjob-controller", name, random);
    },
    [](const std::string& name, Random& random) {
      return Kubeflow("XGBoostJob", "xgboostjob-controller", name, random);
    },
    [](const std::string& name, Random& random) {
      return Kubeflow("MPIJob", "mpijob-controller", name, random);
    },
    [](const std::string& name, Random& random) {
      return Kubeflow("MPIJob", "mpi-operator", name, random);
    },
    [](const std::string& name, Random& random) {
      GeneratedJob job = JobSet(name, random);  // a TrainJob makes one
      job.kind = "TrainJob";
      return job;
    },
    [](const std::string& name, Random& random) {
      return Controlled("RayCluster", {{"ray.io/cluster", name}}, name, random);
    },
    [](const std::string& name, Random& random) {
      return Controlled("SparkApplication", {{"spark-app-selector", name}}, name, random);
    },
    [](const std::string& name, Random& random) {
      return Controlled("Workflow", {{"workflows.argoproj.io/workflow", name}}, name, random);
    },
    [](const std::string& name, Random& random) {
      GeneratedJob job = BatchJob(name, random);
      for (Json& pod : job.pods) pod["spec"]["schedulingGroup"] = {{"podGroupName", name}};
      job.kind = "PodGroup";
      return job;
    },
    [](const std::string& name, Random& random) {
      return Controlled("Actor", Json::object(), name, random);
    },
    [](const std::string& name, Random& random) {
      return Controlled("ReplicaSet", Json::object(), name, random);
    },
    [](const std::string& name, Random& random) {
      return Controlled("ReplicationController", Json::object(), name, random);
    },
    [](const std::string& name, Random& random) {
      return Controlled("DaemonSet", Json::object(), name, random);
    },
    [](const std::string& name, Random& random) {
      return Controlled("Node", Json::object(), name, random);
    },
};

TEST(SameJobTest, PodsOfOneJobHaveOneIdentityAndThoseOfAnotherJobAnother) {
  Random random(1);
  for (const Generator generate : kGenerators) {
    for (int round = 0; round < 20; ++round) {
      const GeneratedJob a = generate("a", random);
      const GeneratedJob b = generate("b", random);
      for (const Json& pod : a.pods) {
        EXPECT_EQ(NamesOf(pod).secret, a.identity) << a.kind << pod;
        for (const Json& other : b.pods) {
          const Names one = NamesOf(pod);
          const Names two = NamesOf(other);
          for (const auto name : {&Names::secret, &Names::program, &Names::report, &Names::whole}) {
            EXPECT_TRUE((one.*name).empty() || one.*name != two.*name) << one.*name << a.kind;
          }
        }
      }
    }
  }
}

// Changes that the user, a partner's controller or a missing webhook makes to all pods of a job.
void Spoil(GeneratedJob& job, Random& random) {
  using Entry = std::pair<const char*, const char*>;
  static constexpr Entry kOtherLabels[] = {{"jobset.sigs.k8s.io/jobset-name", "other"},
                                           {"jobset.sigs.k8s.io/replicatedjob-replicas", "2"},
                                           {"leaderworkerset.sigs.k8s.io/name", "other"},
                                           {"leaderworkerset.sigs.k8s.io/group-index", "0"},
                                           {"training.kubeflow.org/job-name", "other"},
                                           {"training.kubeflow.org/operator-name", "mpi-operator"},
                                           {"batch.kubernetes.io/job-name", "other"},
                                           {"volcano.sh/job-name", "other"},
                                           {"ray.io/cluster", "other"},
                                           {"spark-app-selector", "other"},
                                           {"workflows.argoproj.io/workflow", "other"},
                                           {"apps.kubernetes.io/pod-index", "0"},
                                           {jobs::kGangLabel, "true"},
                                           {jobs::kGangLabel, "together"},
                                           {jobs::kGangLabel, "false"}};
  static constexpr Entry kOtherAnnotations[] = {
      {jobs::kJob, "mine"},    {jobs::kRankGroup, "job"},   {jobs::kRankGroup, "odd"},
      {jobs::kWorldSize, "4"}, {jobs::kWorldSize, "x"},     {jobs::kGangSize, "4"},
      {jobs::kGangSize, "4"},  {jobs::kLauncher, "openmpi"}};
  const int change = Draw(6, random);
  const int which = Draw(20, random);
  for (Json& pod : job.pods) {
    Json& metadata = pod["metadata"];
    Json& owners = metadata["ownerReferences"];
    Json other;
    const auto erase = [which](Json& from) {
      if (from.empty()) return;
      auto at = from.begin();
      std::advance(at, which % static_cast<int>(from.size()));
      from.erase(at);
    };
    const auto add = [which](const auto& others, Json& to) {
      const Entry& one = others[static_cast<size_t>(which) % std::size(others)];
      to[one.first] = one.second;
    };
    switch (change) {
      case 0:
        erase(metadata["labels"]);
        break;
      case 1:
        erase(metadata["annotations"]);
        break;
      case 2:
        add(kOtherLabels, metadata["labels"]);
        break;
      case 3:
        add(kOtherAnnotations, metadata["annotations"]);
        break;
      case 4:  // owned by others beside its controller, in any order
        other = OwnerJson(which % 3 == 0 ? "Job" : "Workflow", "other");
        other.erase("controller");
        owners.insert(which % 2 == 0 ? owners.begin() : owners.end(), other);
        break;
      case 5:
        owners[0].erase("controller");
        break;
      default:
        owners[0][which % 2 == 0 ? "kind" : "name"] = "no name; evil";
    }
  }
}

// Ranks that count each other but have different secrets could not connect.
TEST(SameJobTest, PodsThatCountTogetherHaveOneSecretWhateverContradictsInThem) {
  Random random(2);
  int together = 0;
  for (int round = 0; round < 4000; ++round) {
    const Generator generate = kGenerators[Draw(std::size(kGenerators) - 1, random)];
    GeneratedJob job = generate("a", random);
    for (int changes = Draw(3, random); changes > 0; --changes) Spoil(job, random);
    const Names first = NamesOf(job.pods.front());
    for (const Json& pod : job.pods) {
      const Names names = NamesOf(pod);
      const bool one_program = !names.program.empty() && names.program == first.program;
      const bool one_gang = !names.gang.empty() && names.gang == first.gang;
      const bool one_report = !names.report.empty() && names.report == first.report;
      if (!one_program && !one_gang && !one_report) continue;
      ++together;
      EXPECT_EQ(names.secret, first.secret) << job.kind << pod << job.pods.front();
    }
  }
  EXPECT_GT(together, 2000);
}

// The API server lets none of these through, and a reader takes each of them.
TEST(SameJobTest, FieldsOfOtherTypesCountAsAbsent) {
  Random random(3);
  for (const Generator generate : kGenerators) {
    const Json pod = generate("a", random).pods.front();
    const Json flat = pod.flatten();
    for (const auto& [pointer, value] : flat.items()) {
      for (Json::json_pointer at(pointer); !at.empty(); at.pop_back()) {
        for (const Json& odd : {Json(), Json(7), Json(true), Json("x"), Json::array(),
                                Json::array({7, Json::object()}), Json::object()}) {
          Json changed = pod;
          changed[at] = odd;
          const Names names = NamesOf(changed);
          EXPECT_EQ(names.secret, NamesOf(changed).secret);
        }
      }
    }
  }
}

}  // namespace
}  // namespace railhead::op
