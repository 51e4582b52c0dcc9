// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "jobs/job.h"
#include "operator/admission/mutation.h"
#include "operator/objects/not_done.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct JobRank : jobs::Rank {
  std::vector<NotDoneNote> not_done = {};  // of what is missing
};

JobRank RankOf(const Json& pod) {
  JobRank rank = {jobs::RankOf(pod)};
  for (const jobs::NoRank& missing : rank.missing) rank.not_done.push_back(NoteOf(missing));
  return rank;
}

// A pod as JobSet's and the Job's controllers make it, of `jobs` Jobs with `pods` pods each.
Json JobSetPod(int jobs, int pods, int job, int index) {
  Json pod = Json::parse(R"({"metadata": {"labels": {
      "jobset.sigs.k8s.io/jobset-name": "train",
      "jobset.sigs.k8s.io/replicatedjob-name": "slice"}},
    "spec": {"subdomain": "train", "containers": [
      {"name": "main", "resources": {"limits": {"rdma/hca": "1"}}}]}})");
  Json& labels = pod["metadata"]["labels"];
  labels["jobset.sigs.k8s.io/replicatedjob-replicas"] = std::to_string(jobs);
  labels["jobset.sigs.k8s.io/job-index"] = std::to_string(job);
  labels["batch.kubernetes.io/job-name"] = "train-slice-" + std::to_string(job);
  // The template's stamp, by the admission of its Job.
  Json owner = {{"metadata", {{"labels", labels}}},
                {"spec",
                 {{"completionMode", "Indexed"},
                  {"completions", pods},
                  {"parallelism", pods},
                  {"template", {{"spec", pod["spec"]}}}}}};
  owner = owner.patch(StampJob(owner, InjectionConfig()).patch);
  pod["metadata"]["annotations"] = owner["spec"]["template"]["metadata"]["annotations"];
  pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] =
      std::to_string(index);
  return pod;
}

TEST(JobRankTest, PodsOfAReplicatedJobAreOneJob) {
  for (const int jobs : {1, 2, 3, 7}) {
    for (const int pods : {1, 2, 5}) {
      std::set<int> ranks;
      std::set<std::string> masters;
      std::set<std::string> names;
      for (int job = 0; job < jobs; ++job) {
        for (int index = 0; index < pods; ++index) {
          const JobRank rank = RankOf(JobSetPod(jobs, pods, job, index));
          EXPECT_THAT(rank.not_done, IsEmpty());
          ASSERT_TRUE(rank.rank.has_value());
          ranks.insert(*rank.rank);
          EXPECT_EQ(rank.world, jobs * pods);
          masters.insert(rank.master);
          names.insert(rank.job);
          EXPECT_EQ(*rank.rank == 0, job == 0 && index == 0);
        }
      }
      EXPECT_EQ(ranks.size(), static_cast<size_t>(jobs * pods));
      EXPECT_EQ(*ranks.rbegin(), jobs * pods - 1);
      EXPECT_EQ(masters, std::set<std::string>{"train-slice-0-0.train"});
      EXPECT_EQ(names.size(), 1U);
    }
  }
}

TEST(JobRankTest, EachJobOfAReplicatedJobAloneWhereThePodSaysSo) {
  Json pod = JobSetPod(3, 4, 2, 1);
  pod["metadata"]["annotations"]["railhead.io/rank-group"] = "job";
  pod["metadata"]["annotations"]["railhead.io/world-size"] = "4";
  const JobRank rank = RankOf(pod);
  EXPECT_EQ(rank.rank, 1);
  EXPECT_EQ(rank.world, 4);
  EXPECT_EQ(rank.master, "train-slice-2-0.train");
  EXPECT_EQ(rank.job, "train-slice-2");
  pod["metadata"]["annotations"]["railhead.io/rank-group"] = "slices";
  pod["metadata"]["annotations"]["railhead.io/world-size"] = "12";
  EXPECT_THAT(FormatNotDone(RankOf(pod).not_done),
              HasSubstr("GroupUnknown: metadata.annotations[railhead.io/rank-group] is 'slices'"));
}

TEST(JobRankTest, ContradictionsGiveNoRank) {
  for (const char* index : {"", "x", "-1", "3", "99999999999"}) {
    Json pod = JobSetPod(3, 4, 2, 1);
    pod["metadata"]["labels"]["jobset.sigs.k8s.io/job-index"] = index;
    const JobRank rank = RankOf(pod);
    EXPECT_FALSE(rank.rank.has_value()) << index;
    EXPECT_THAT(FormatNotDone(rank.not_done),
                HasSubstr("IndexInvalid: no RANK: label jobset.sigs.k8s.io/job-index"))
        << index;
  }
  for (const char* world : {"", "0", "2", "13", "x"}) {
    Json pod = JobSetPod(3, 4, 2, 1);
    pod["metadata"]["annotations"]["railhead.io/world-size"] = world;
    EXPECT_FALSE(RankOf(pod).rank.has_value()) << world;
  }
}

// Labels of the longest, and of bytes that no API server lets through.
TEST(JobRankTest, NothingStrangeIsRepeatedAtLength) {
  Json pod = JobSetPod(3, 4, 2, 1);
  pod["metadata"]["labels"]["jobset.sigs.k8s.io/job-index"] = std::string(5000, '\n');
  const std::string text = FormatNotDone(RankOf(pod).not_done);
  EXPECT_LT(text.size(), 700U);
  EXPECT_EQ(ParseNotDone(EncodeNotDone(RankOf(pod).not_done)), RankOf(pod).not_done);
}

TEST(JobRankTest, TheLeaderOfAGroupIsItsFirstRank) {
  Json pod = Json::parse(R"({"metadata": {
      "labels": {"leaderworkerset.sigs.k8s.io/name": "serve",
                 "leaderworkerset.sigs.k8s.io/group-index": "3",
                 "leaderworkerset.sigs.k8s.io/worker-index": "2"},
      "annotations": {"leaderworkerset.sigs.k8s.io/size": "4"}},
    "spec": {"subdomain": "serve", "containers": []}})");
  JobRank rank = RankOf(pod);
  EXPECT_EQ(rank.rank, 2);
  EXPECT_EQ(rank.world, 4);
  EXPECT_EQ(rank.master, "serve-3.serve");
  EXPECT_EQ(rank.job, "serve-3");
  pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/worker-index"] = "4";
  EXPECT_FALSE(RankOf(pod).world.has_value());
}

TEST(JobRankTest, NothingIsInventedForOthers) {
  const Json pod = Json::parse(R"({"metadata": {"ownerReferences": [
      {"kind": "ReplicaSet", "name": "web"}]}, "spec": {"subdomain": "s"}})");
  const JobRank rank = RankOf(pod);
  EXPECT_FALSE(rank.rank.has_value());
  EXPECT_FALSE(rank.world.has_value());
  EXPECT_THAT(rank.job + rank.master, IsEmpty());
  EXPECT_THAT(FormatNotDone(rank.not_done), HasSubstr("NoJob: no RANK: the pods of a ReplicaSet"));
}

// What the training operator's controllers write into the pods of a job "bert".
Json KubeflowPod(const char* controller, const char* type, int index, const Json& env) {
  return {
      {"metadata",
       {{"labels",
         {{"training.kubeflow.org/job-name", "bert"},
          {"training.kubeflow.org/operator-name", controller},
          {"training.kubeflow.org/replica-type", type},
          {"training.kubeflow.org/replica-index", std::to_string(index)}}}}},
      {"spec",
       {{"containers",
         {{{"name", "main"}, {"resources", {{"limits", {{"rdma/hca", "1"}}}}}, {"env", env}}}}}}};
}

std::string PlaceOf(const Json& pod) {
  const JobRank rank = RankOf(pod);
  if (!rank.rank) return FormatNotDone(rank.not_done);
  return absl::StrCat(rank.job, ": ", *rank.rank, " of ", rank.world.value_or(-1), " at ",
                      rank.master);
}

TEST(JobRankTest, KubeflowTellsRanksUnderOtherNames) {
  EXPECT_EQ(PlaceOf(KubeflowPod("jaxjob-controller", "worker", 2, Json::parse(R"([
                {"name": "COORDINATOR_ADDRESS", "value": "bert-worker-0"},
                {"name": "NUM_PROCESSES", "value": "4"}, {"name": "PROCESS_ID", "value": "2"}])"))),
            "bert: 2 of 4 at bert-worker-0");
  const auto tensorflow = [](const char* type, int index) {
    const Json config = {
        {"cluster",
         {{"chief", {"bert-chief-0.team.svc:2222"}},
          {"ps", {"bert-ps-0.team.svc:2222"}},
          {"worker", {"bert-worker-0.team.svc:2222", "bert-worker-1.team.svc:2222"}}}},
        {"task", {{"type", type}, {"index", index}}}};
    return PlaceOf(KubeflowPod("tfjob-controller", type, index,
                               {{{"name", "TF_CONFIG"}, {"value", config.dump()}}}));
  };
  EXPECT_EQ(tensorflow("chief", 0), "bert: 0 of 3 at bert-chief-0.team.svc");
  EXPECT_EQ(tensorflow("worker", 1), "bert: 2 of 3 at bert-chief-0.team.svc");
  EXPECT_THAT(tensorflow("worker", 2), HasSubstr("SizeUnknown: "));
  EXPECT_THAT(tensorflow("ps", 0), HasSubstr("KindHasNoRanks: no RANK: this pod of the TFJob"));
  const auto paddle = [](const char* more) {
    Json env = Json::parse(R"([{"name": "PADDLE_NNODES", "value": "3"}])");
    if (*more != 0) env.push_back({{"name", more}, {"value", "1"}});
    return PlaceOf(KubeflowPod("paddlejob-controller", "worker", 1, env));
  };
  EXPECT_EQ(paddle(""), "bert: 1 of 3 at bert-worker-0");
  EXPECT_THAT(paddle("PADDLE_TRAINER_NUM"), HasSubstr("KindHasNoRanks: "));
  for (const char* strange : {"", "{", "[]", R"({"task": 7})", R"({"task": {"index": -1}})",
                              R"({"cluster": {"worker": "x"}, "task": {"index": 0}})"}) {
    EXPECT_THAT(PlaceOf(KubeflowPod("tfjob-controller", "worker", 0,
                                    {{{"name", "TF_CONFIG"}, {"value", strange}}})),
                HasSubstr("SizeUnknown: "))
        << strange;
  }
  EXPECT_THAT(PlaceOf(KubeflowPod("pytorchjob-controller", "worker", 0,
                                  Json::parse(R"([{"name": "PET_NNODES", "value": "1:4"}])"))),
              HasSubstr("KindHasNoRanks: no RANK: an elastic PyTorchJob"));
  EXPECT_THAT(PlaceOf(KubeflowPod("mpi-operator", "worker", 0, Json::array())),
              HasSubstr("KindHasNoRanks: no RANK: mpirun"));
}

TEST(JobRankTest, AnMpiLauncherPassesOnWhatItsRanksNeed) {
  Json pod = KubeflowPod("mpi-operator", "launcher", 0, Json::array());
  pod["spec"]["containers"][0].erase("resources");
  pod["spec"]["subdomain"] = "bert";
  const InjectionConfig config = {.environment = {{"NCCL_DEBUG", "WARN"}}};
  const auto admit = [&](const Json& in) { return MutatePod(in, config, ProfileSet(), "team"); };
  EXPECT_EQ(admit(pod).outcome, Outcome::kIgnored);
  pod["metadata"]["annotations"] = {{"railhead.io/launcher", "openmpi"}};
  const Json once = pod.patch(admit(pod).patch);
  EXPECT_EQ(once["spec"]["containers"][0]["env"], Json::parse(R"([
    {"name": "MASTER_ADDR", "value": "bert-worker-0.bert"},
    {"name": "MASTER_PORT", "value": "29500"},
    {"name": "NCCL_DEBUG", "value": "WARN"},
    {"name": "OMPI_MCA_mca_base_env_list",
     "value": "MASTER_ADDR;MASTER_PORT;NCCL_DEBUG;RAILHEAD_JOB"},
    {"name": "RAILHEAD_JOB", "value": "bert"}])"));
  EXPECT_THAT(admit(once).patch, IsEmpty());
  pod["metadata"]["annotations"]["railhead.io/launcher"] = "hydra";
  pod["spec"]["containers"][0]["env"] = Json::parse(R"([{"name": "NCCL_DEBUG", "value": "INFO"}])");
  const Json hydra = pod.patch(admit(pod).patch);
  EXPECT_EQ(hydra["spec"]["containers"][0]["env"][0]["value"], "INFO");
  EXPECT_EQ(hydra["spec"]["containers"][0]["env"][1]["name"], "I_MPI_HYDRA_ENV");
  pod["metadata"]["annotations"]["railhead.io/launcher"] = "true";
  EXPECT_THAT(admit(pod).warnings, ::testing::ElementsAre(HasSubstr("must be openmpi or hydra")));
  EXPECT_THAT(admit(pod).patch, IsEmpty());
}

// Each piece of evidence that mpirun starts ranks in a pod, added to a spec.
std::vector<Json> WithMpirun(const Json& spec) {
  std::vector<Json> specs;
  for (const char* volume : {"mpi-ssh-auth", "mpi-hostfile"}) {
    specs.push_back(spec);
    specs.back()["volumes"] = {{{"name", "data"}}, {{"name", volume}}};
  }
  for (const char* variable : {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile",
                               "I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE"}) {
    specs.push_back(spec);
    specs.back()["containers"][0]["env"] = {{{"name", "A"}, {"value", "b"}},
                                            {{"name", variable}, {"value", "/etc/mpi/hostfile"}}};
  }
  for (const char* program : {"mpirun", "/usr/bin/mpirun", "mpiexec", "/opt/i/mpiexec.hydra",
                              "orterun", "prterun", "/usr/sbin/sshd", "sshd"}) {
    specs.push_back(spec);
    specs.back()["containers"][0]["command"] = {program, "-De"};
  }
  return specs;
}

std::map<std::string, std::string> VariablesIn(const Json& pod) {
  std::map<std::string, std::string> variables;
  for (const Json& one : pod["spec"]["containers"][0].value("env", Json::array())) {
    variables[one["name"]] = one.value("value", "");
  }
  return variables;
}

TEST(JobRankTest, WhereMpirunStartsRanksPodsHaveNone) {
  const InjectionConfig config = {.environment = {}, .gangs = true};
  for (const char* replicated_job : {"launcher", "node"}) {
    for (const int jobs : {1, 3}) {
      for (const bool gang : {false, true}) {
        Json pod = JobSetPod(jobs, 2, jobs - 1, 1);
        pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] = replicated_job;
        pod["metadata"]["annotations"]["railhead.io/gang-size"] = std::to_string(2 * jobs);
        if (gang) pod["metadata"]["labels"]["railhead.io/gang"] = "true";
        const auto admitted = [&] {
          return pod.patch(MutatePod(pod, config, ProfileSet(), "team").patch);
        };
        EXPECT_EQ(VariablesIn(admitted()).count("RANK"), 1U);
        for (const Json& spec : WithMpirun(pod["spec"])) {
          pod["spec"] = spec;
          const auto variables = VariablesIn(admitted());
          for (const char* of_rank : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
            EXPECT_FALSE(variables.contains(of_rank)) << of_rank << " " << spec;
          }
          EXPECT_EQ(variables.at("RAILHEAD_JOB"), "train") << spec;
          EXPECT_THAT(admitted()["metadata"]["annotations"]["railhead.io/not-done"],
                      HasSubstr("KindHasNoRanks"));
        }
      }
    }
  }
  // A helper that serves ssh beside the program says nothing of the program's ranks.
  Json pod = JobSetPod(1, 2, 0, 1);
  pod["spec"]["containers"].push_back({{"name", "debug"}, {"command", {"/usr/sbin/sshd"}}});
  EXPECT_EQ(RankOf(pod).rank, 1);
  // Nor is a program whose arguments contain such a name started by it.
  pod["spec"]["containers"][0]["command"] = {"python", "mpirun"};
  EXPECT_EQ(RankOf(pod).rank, 1);
}

TEST(JobRankTest, AJobWhoseRanksMpirunStartsGetsNoSize) {
  const Json spec = JobSetPod(1, 2, 0, 0)["spec"];
  Json job = {{"spec", {{"completionMode", "Indexed"}, {"completions", 2}, {"parallelism", 2}}}};
  job["spec"]["template"]["spec"] = spec;
  EXPECT_THAT(StampJob(job, InjectionConfig()).patch, Not(IsEmpty()));
  for (const Json& by_mpirun : WithMpirun(spec)) {
    job["spec"]["template"]["spec"] = by_mpirun;
    EXPECT_THAT(StampJob(job, InjectionConfig()).patch, IsEmpty()) << by_mpirun;
    EXPECT_THAT(StampJob(job, InjectionConfig()).warnings, IsEmpty()) << by_mpirun;
  }
}

// The launcher of an MPIJob or a TrainJob that requests RDMA is first in mpirun's list of hosts.
TEST(JobRankTest, ALauncherThatIsAWorkerPassesOnItsOwnAddress) {
  const InjectionConfig config = {.environment = {{"NCCL_DEBUG", "WARN"}}};
  const auto admit = [&](const Json& in) { return MutatePod(in, config, ProfileSet(), "team"); };
  Json train = JobSetPod(1, 1, 0, 0);
  train["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] = "launcher";
  train["spec"]["volumes"] = {{{"name", "mpi-ssh-auth"}}};
  Json mpi = KubeflowPod("mpi-operator", "launcher", 0, Json::array());
  for (auto& [pod, job, first_worker] : {std::tuple(&train, "train", "train-node-0-0.net"),
                                         std::tuple(&mpi, "bert", "bert-worker-0.net")}) {
    (*pod)["metadata"]["annotations"]["railhead.io/launcher"] = "openmpi";
    (*pod)["spec"]["hostname"] = "the-launcher";
    (*pod)["spec"]["subdomain"] = "net";
    const Json worker = pod->patch(admit(*pod).patch);
    auto variables = VariablesIn(worker);
    EXPECT_EQ(variables["MASTER_ADDR"], "the-launcher.net");
    EXPECT_EQ(variables["RAILHEAD_JOB"], job);
    // Not the names of the launcher's own pod and node.
    EXPECT_EQ(variables["OMPI_MCA_mca_base_env_list"],
              "MASTER_ADDR;MASTER_PORT;NCCL_DEBUG;RAILHEAD_JOB");
    EXPECT_FALSE(variables.contains("RANK"));
    EXPECT_FALSE(worker["metadata"]["annotations"].contains("railhead.io/not-done")) << worker;
    EXPECT_THAT(admit(*pod).warnings, IsEmpty());
    EXPECT_THAT(admit(worker).patch, IsEmpty());
    Json alone = *pod;
    alone["spec"]["containers"][0].erase("resources");
    EXPECT_EQ(VariablesIn(alone.patch(admit(alone).patch))["MASTER_ADDR"], first_worker);
  }
}

TEST(JobRankTest, VolcanosPluginsTellTheTaskAndItsSize) {
  Json pod = Json::parse(R"({"metadata": {"annotations": {
      "volcano.sh/job-name": "bert", "volcano.sh/task-spec": "worker"}},
    "spec": {"subdomain": "bert", "containers": [{"name": "main",
      "resources": {"limits": {"rdma/hca": "1"}}, "env": [
      {"name": "VC_TASK_INDEX", "value": "1"},
      {"name": "VC_WORKER_NUM",
       "valueFrom": {"configMapKeyRef": {"name": "bert-svc", "key": "VC_WORKER_NUM"}}}]}]}})");
  const JobRank rank = RankOf(pod);
  EXPECT_EQ(rank.rank, 1);
  EXPECT_EQ(rank.master, "bert-worker-0.bert");
  const auto admit = [](const Json& in) {
    return MutatePod(in, InjectionConfig(), ProfileSet(), "team");
  };
  const Json once = pod.patch(admit(pod).patch);
  EXPECT_EQ(once["spec"]["containers"][0]["env"][1],
            Json::parse(R"({"name": "WORLD_SIZE", "valueFrom": {"configMapKeyRef":
                            {"name": "bert-svc", "key": "VC_WORKER_NUM"}}})"));
  EXPECT_FALSE(once["metadata"]["annotations"].contains("railhead.io/not-done"));
  EXPECT_THAT(admit(once).patch, IsEmpty());
  Json& env = pod["spec"]["containers"][0]["env"];
  env.push_back({{"name", "VC_MASTER_NUM"}, {"valueFrom", {{"configMapKeyRef", {{"key", "k"}}}}}});
  EXPECT_THAT(PlaceOf(pod), HasSubstr("NoIndex: no RANK: the Volcano Job has several tasks"));
  env.erase(2);
  env.erase(1);
  EXPECT_THAT(FormatNotDone(RankOf(pod).not_done), HasSubstr("SizeUnknown: "));
  pod["metadata"]["annotations"]["railhead.io/world-size"] = "2";
  EXPECT_EQ(PlaceOf(pod), "bert: 1 of 2 at bert-worker-0.bert");
  env.erase(0);
  EXPECT_THAT(PlaceOf(pod), HasSubstr("NoIndex: no RANK: VC_TASK_INDEX is missing"));
}

TEST(JobRankTest, PodsOfAStatefulSetAreRanksIfItsTemplateSaysHowMany) {
  Json pod = Json::parse(R"({"metadata": {
      "labels": {"apps.kubernetes.io/pod-index": "2"}, "annotations": {},
      "ownerReferences": [{"kind": "StatefulSet", "name": "ring", "controller": true}]},
    "spec": {"subdomain": "ring"}})");
  EXPECT_THAT(PlaceOf(pod), HasSubstr("NoJob: no RANK: the pods of a StatefulSet"));
  pod["metadata"]["annotations"]["railhead.io/world-size"] = "4";
  EXPECT_EQ(PlaceOf(pod), "ring: 2 of 4 at ring-0.ring");
  pod["metadata"]["annotations"]["railhead.io/world-size"] = "2";
  EXPECT_THAT(FormatNotDone(RankOf(pod).not_done), HasSubstr("SizeInvalid: "));
}

TEST(JobRankTest, EveryOtherKindIsToldWhyThereIsNoRank) {
  const auto told = [](const char* metadata) {
    return PlaceOf({{"metadata", Json::parse(metadata)}, {"spec", Json::object()}});
  };
  EXPECT_THAT(told(R"({"labels": {"ray.io/cluster": "r"}})"),
              HasSubstr("KindHasNoRanks: no RANK: Ray"));
  EXPECT_THAT(told(R"({"labels": {"workflows.argoproj.io/workflow": "w"}})"),
              HasSubstr("KindHasNoRanks: no RANK: the steps of a Workflow"));
  EXPECT_THAT(told(R"({"labels": {"batch.kubernetes.io/job-name": "j"}})"),
              HasSubstr("NoIndex: no RANK: the Job is not Indexed; set spec.completionMode"));
  EXPECT_THAT(told("{}"), HasSubstr("NoJob: no RANK: the pod belongs to no job"));
  EXPECT_THAT(told(R"({"ownerReferences": [{"kind": "Sparkle"}]})"),
              HasSubstr("KindUnknown: no RANK: the pod belongs to a 'Sparkle'"));
}

// torchrun's WORLD_SIZE counts GPUs, our RANK pods.
TEST(JobRankTest, AContainerThatCountsItsRanksItselfGetsNoneOfOurs) {
  Json pod = JobSetPod(1, 2, 0, 1);
  const auto names = [&pod](const Mutation& mutation) {
    std::vector<std::string> found;
    const Json after = pod.patch(mutation.patch);
    for (const Json& entry : after["spec"]["containers"][0]["env"]) {
      found.push_back(entry["name"]);
    }
    return found;
  };
  const auto admit = [&pod] { return MutatePod(pod, InjectionConfig(), ProfileSet(), "team"); };
  EXPECT_THAT(names(admit()), Contains("RANK"));
  pod["spec"]["containers"][0]["env"] = {{{"name", "WORLD_SIZE"}, {"value", "16"}}};
  EXPECT_THAT(names(admit()), Not(Contains("RANK")));
  EXPECT_THAT(admit().warnings, Contains(HasSubstr("main gets no RANK: its own WORLD_SIZE")));
  const Json once = pod.patch(admit().patch);
  EXPECT_THAT(MutatePod(once, InjectionConfig(), ProfileSet(), "team").patch, IsEmpty());
  // The same number: there is nothing to contradict.
  pod["spec"]["containers"][0]["env"][0]["value"] = "2";
  EXPECT_THAT(names(admit()), Contains("RANK"));
  EXPECT_THAT(admit().warnings, IsEmpty());
}

}  // namespace
}  // namespace railhead::op
