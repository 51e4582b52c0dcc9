// SPDX-License-Identifier: Apache-2.0
//
// MPIJob, of the MPI operator or of Kubeflow's training operator: its workers; their number is
// unknown. No ranks: mpirun assigns them to the processes that it starts.
#include "jobs/fields.h"
#include "jobs/kinds.h"
#include "jobs/mpirun.h"
#include "kube/elements.h"

namespace railhead::jobs {
namespace {

constexpr const Cause* kCausesOfMpiJob[] = {&kByMpirun};

// The MPI operator creates a Job for the launcher, which controls its pod.
std::optional<Identity> MpiJobOf(const kube::Json& pod) {
  std::string name = kube::LabelOf(pod, "training.kubeflow.org/job-name");
  const std::string controller = kube::LabelOf(pod, "training.kubeflow.org/operator-name");
  const bool of_mpi_operator = controller == "mpi-operator";
  if (name.empty() || (!of_mpi_operator && controller != "mpijob-controller")) return std::nullopt;
  return Identity{.name = std::move(name), .above_controllers = of_mpi_operator};
}

bool ReadMpiJob(const kube::Json& pod, Job& job) {
  job.index = NumberIn(kube::LabelOf(pod, "training.kubeflow.org/replica-index"), 0);
  return true;
}

std::optional<Rank> RankInMpiJob(const Pod& pod) { return RankByMpirun(pod); }

}  // namespace

constexpr Kind kMpiJob = {
    .name = "MPIJob",
    .identity = MpiJobOf,
    .part = ReadMpiJob,
    .rank = RankInMpiJob,
    .causes = kCausesOfMpiJob,
    .pods = Kind::Pods::kOneProgram,
    .by_mpirun = true,
    .first_worker = "-worker-0",
    .eviction = Kind::Eviction::kMadeAgain,
};

}  // namespace railhead::jobs
