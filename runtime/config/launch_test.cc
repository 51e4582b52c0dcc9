// SPDX-License-Identifier: Apache-2.0
//
// Environments of a generator, in which several launchers have set variables: only the one that
// decides counts. Variables as seen in processes that the programs have started.
#include "runtime/config/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/config/env.h"
#include "runtime/config/world.h"

namespace railhead::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Variables {
  std::map<std::string, std::string> values;
  std::optional<std::string> operator()(absl::string_view name) const {
    const auto found = values.find(std::string(name));
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
};

// A job of a launcher: `ranks` on `hosts`, the same number on each.
struct Job {
  int number = 0;
  int hosts = 1;
  int per_host = 1;
  int size() const { return hosts * per_host; }
};

using Setter = std::function<void(const Job& job, int rank, Variables& env)>;

void SetOpenMpi4(const Job& job, int rank, Variables& env) {
  const std::string id = absl::StrCat(831848449 + job.number);
  env.values["OMPI_COMM_WORLD_RANK"] = absl::StrCat(rank);
  env.values["OMPI_COMM_WORLD_SIZE"] = absl::StrCat(job.size());
  env.values["OMPI_COMM_WORLD_LOCAL_SIZE"] = absl::StrCat(job.per_host);
  env.values["OMPI_MCA_ess_base_jobid"] = id;
  env.values["OMPI_MCA_orte_precondition_transports"] = absl::StrCat("175e24b14ea6c532-", id);
  env.values["PMIX_NAMESPACE"] = id;
  env.values["PMIX_RANK"] = absl::StrCat(rank);
  // Each host has a daemon of its own.
  env.values["PMIX_SERVER_URI41"] =
      absl::StrCat(id, ".0;tcp4://127.0.0.1:", 33000 + rank / job.per_host);
}

void SetOpenMpi5(const Job& job, int rank, Variables& env) {
  SetOpenMpi4(job, rank, env);
  env.values.erase("OMPI_MCA_ess_base_jobid");
  env.values.erase("OMPI_MCA_orte_precondition_transports");
  env.values["PMIX_NAMESPACE"] = absl::StrCat("prterun-host-", 100 + job.number, "@1");
}

void SetHydra(const Job& job, int rank, Variables& env) {
  env.values["PMI_RANK"] = absl::StrCat(rank);
  env.values["PMI_SIZE"] = absl::StrCat(job.size());
  env.values["MPI_LOCALNRANKS"] = absl::StrCat(job.per_host);
  env.values["MPI_LOCALRANKID"] = absl::StrCat(rank % job.per_host);
}

void SetFlux(const Job& job, int rank, Variables& env) {
  env.values["FLUX_JOB_ID"] = absl::StrCat("f2xyz", job.number);
  env.values["FLUX_TASK_RANK"] = absl::StrCat(rank);
  env.values["FLUX_JOB_SIZE"] = absl::StrCat(job.size());
  env.values["FLUX_JOB_NNODES"] = absl::StrCat(job.hosts);
  env.values["PMI_RANK"] = absl::StrCat(rank);
  env.values["PMI_SIZE"] = absl::StrCat(job.size());
}

void SetSlurm(const Job& job, int rank, Variables& env) {
  env.values["SLURM_JOB_ID"] = "17261351";
  env.values["SLURM_STEP_ID"] = absl::StrCat(job.number);
  env.values["SLURM_PROCID"] = absl::StrCat(rank);
  env.values["SLURM_STEP_NUM_TASKS"] = absl::StrCat(job.size());
  env.values["SLURM_STEP_NUM_NODES"] = absl::StrCat(job.hosts);
}

void SetSlurmPmi2(const Job& job, int rank, Variables& env) {
  SetSlurm(job, rank, env);
  env.values["PMI_RANK"] = absl::StrCat(rank);
  env.values["PMI_SIZE"] = absl::StrCat(job.size());
}

void SetTorchrun(const Job& job, int rank, Variables& env) {
  env.values["TORCHELASTIC_RUN_ID"] = absl::StrCat("run", job.number);
  env.values["TORCHELASTIC_RESTART_COUNT"] = "0";
  env.values["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  env.values["RANK"] = absl::StrCat(rank);
  env.values["WORLD_SIZE"] = absl::StrCat(job.size());
  env.values["GROUP_WORLD_SIZE"] = absl::StrCat(job.hosts);
  env.values["MASTER_ADDR"] = "10.0.0.1";
}

struct Kind {
  const char* what;
  Setter set;
  bool named;       // the launcher names its jobs
  bool needs_none;  // on one host, ranks need no MASTER_ADDR
};
const std::vector<Kind>& Kinds() {
  // The innermost first, as in world.h.
  static const std::vector<Kind> kinds = {{"torchrun", SetTorchrun, true, false},
                                          {"mpirun of Open MPI 4", SetOpenMpi4, true, true},
                                          {"mpirun of Open MPI 5", SetOpenMpi5, true, true},
                                          {"mpiexec", SetHydra, false, true},
                                          {"flux run", SetFlux, true, true},
                                          {"srun --mpi=pmi2", SetSlurmPmi2, true, true},
                                          {"srun", SetSlurm, true, true}};
  return kinds;
}

TEST(LaunchTest, ALaunchIsNamedAlikeOnAllItsRanksAndOnNoOther) {
  std::mt19937 random{20267};
  const auto below = [&random](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  for (int round = 0; round < 3000; ++round) {
    const size_t inner = static_cast<size_t>(below(static_cast<int>(Kinds().size())));
    const Kind& kind = Kinds()[inner];
    // It may run in a job of a resource manager, one process on each host.
    const bool nested = inner < 4 && below(2) == 0;
    const Job outer{7, 1 + below(3), 1};
    Job jobs[2];
    for (int number = 0; number < 2; ++number) {
      jobs[number] = {number, nested ? outer.hosts : 1 + below(3), 1 + below(3)};
    }
    std::string names[2];
    for (int number = 0; number < 2; ++number) {
      const Job& job = jobs[number];
      for (int rank = 0; rank < job.size(); ++rank) {
        Variables env;
        if (nested) SetSlurm(outer, rank / job.per_host, env);
        kind.set(job, rank, env);
        const absl::StatusOr<Rendezvous> found = ReadRendezvous(env);
        const bool one_host = job.hosts == 1;
        const bool has_address = env.values.contains("MASTER_ADDR");
        const bool finds = one_host || has_address || rank == 0 || job.size() == 1;
        ASSERT_EQ(found.ok(), finds) << kind.what << ": " << found.status();
        if (!found.ok()) {
          EXPECT_THAT(std::string(found.status().message()),
                      AllOf(HasSubstr("MASTER_ADDR is not set"), HasSubstr("are on one host"),
                            HasSubstr("mpirun -x MASTER_ADDR=HOST")));
          continue;
        }
        EXPECT_EQ(found->rank, rank) << kind.what;
        EXPECT_EQ(found->world_size, job.size()) << kind.what;
        const Launch& launch = found->launch;
        EXPECT_EQ(launch.name.empty(), !kind.named) << kind.what;
        if (kind.needs_none) {
          EXPECT_EQ(launch.one_host, one_host) << kind.what;
        }
        EXPECT_EQ(launch.store_key.empty(), kind.what != std::string("torchrun"));
        const std::string name = absl::StrCat(launch.name, launch.one_host ? launch.on_host : "");
        if (rank == 0) names[number] = name;
        EXPECT_EQ(name, names[number]) << kind.what;
        // What others may read names no random key.
        EXPECT_THAT(launch.name, Not(HasSubstr("175e24b14ea6c532")));
      }
    }
    if (kind.named) {
      EXPECT_NE(names[0], names[1]) << kind.what;
    }
  }
}

TEST(LaunchTest, TheStoreOfAnAgentIsUsedIfItSaysSo) {
  Variables env;
  SetTorchrun({0, 1, 2}, 1, env);
  const std::string first = ReadRendezvous(env)->launch.store_key;
  EXPECT_EQ(first, "/railhead/run0/rank 0 of restart 0");
  env.values["TORCHELASTIC_RESTART_COUNT"] = "1";
  EXPECT_EQ(ReadRendezvous(env)->launch.store_key, "/railhead/run0/rank 0 of restart 1");
  // Agents of several nodes count their restarts apart.
  env.values["GROUP_WORLD_SIZE"] = "2";
  EXPECT_EQ(ReadRendezvous(env)->launch.store_key, "/railhead/run0/rank 0");
  env.values["MASTER_ADDR"] = "";
  env.values["RANK"] = "0";
  EXPECT_THAT(std::string(ReadRendezvous(env).status().message()),
              HasSubstr("MASTER_ADDR is not set on a rank of RANK=0"));
  env.values["MASTER_ADDR"] = "10.0.0.1";
  env.values["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(ReadRendezvous(env)->launch.store_key, "");
  // In a pod, its variables may be older than the program that has started this process.
  env.values.erase("TORCHELASTIC_RUN_ID");
  env.values["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(ReadRendezvous(env)->launch.store_key, "");
}

TEST(LaunchTest, ThePodsWorldIsOfNoLauncher) {
  Variables env;
  SetOpenMpi4({0, 1, 2}, 1, env);
  env.values["RANK"] = "1";
  env.values["WORLD_SIZE"] = "2";
  env.values["MASTER_ADDR"] = "a";
  env.values["RAILHEAD_WORLD"] = "pod";
  EXPECT_EQ(ReadRendezvous(env)->launch.name, "");
  EXPECT_FALSE(ReadRendezvous(env)->launch.one_host);
  EXPECT_FALSE(ReadRendezvous(env)->by_launcher);
}

TEST(LaunchTest, PartsOfAHeterogeneousJobHaveDifferentNumbers) {
  Variables env;
  SetSlurm({0, 1, 2}, 1, env);
  env.values["SLURM_HET_SIZE"] = "2";
  env.values["MASTER_ADDR"] = "a";
  EXPECT_EQ(ReadRendezvous(env)->launch.name, "");
}

TEST(LaunchTest, ALongNameIsCutWhereJobsAreAlike) {
  Variables env;
  SetTorchrun({0, 1, 2}, 1, env);
  env.values["TORCHELASTIC_RUN_ID"] = absl::StrCat(std::string(5000, 'x'), "\n1");
  const std::string name = ReadRendezvous(env)->launch.name;
  EXPECT_EQ(name.size(), kLongestLaunchName);
  EXPECT_THAT(name, ::testing::EndsWith("x\\n1)"));
  std::string accents = "1";
  for (int i = 0; i < 400; ++i) accents += "\xc3\xa9";
  env.values["TORCHELASTIC_RUN_ID"] = accents;
  EXPECT_EQ(ReadRendezvous(env)->launch.name,
            absl::StrCat(std::string(kLongestLaunchName - 1, '?'), ")"));
}

}  // namespace
}  // namespace railhead::config
