// SPDX-License-Identifier: Apache-2.0
#include "jobs/mpirun.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/string_view.h"
#include "jobs/fields.h"
#include "jobs/job.h"
#include "kube/elements.h"

namespace railhead::jobs {
namespace {

using kube::Json;
using kube::StringAt;

constexpr absl::string_view kVolumes[] = {"mpi-ssh-auth", "mpi-hostfile"};
// Open MPI up to 4, Open MPI 5, Intel MPI, MPICH.
constexpr absl::string_view kHostLists[] = {"OMPI_MCA_orte_default_hostfile",
                                            "PRTE_MCA_prte_default_hostfile",
                                            "I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE"};
constexpr absl::string_view kPrograms[] = {"mpirun",  "mpiexec", "mpiexec.hydra",
                                           "orterun", "prterun", "sshd"};

template <size_t size>
bool IsIn(const absl::string_view (&names)[size], absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Returns whether one of the objects of a list has one of these names.
template <size_t size>
bool HasNamed(const Json& object, absl::string_view list, const absl::string_view (&names)[size]) {
  const auto& entries = kube::ElementsAt(object, {list});
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Json& entry) { return IsIn(names, StringAt(entry, {"name"})); });
}

// Returns the file name of the program that the container starts; empty: its image's.
std::string ProgramOf(const Json& container) {
  const auto& command = kube::ElementsAt(container, {"command"});
  if (command.empty() || !command.front().is_string()) return "";
  const auto path = command.front().get<std::string>();
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

constexpr Cause kByMpirun = {
    "KindHasNoRanks", "ByMpirun", 0,
    "no RANK: mpirun assigns ranks to the processes that it starts over ssh, which do not see this "
    "container's variables",
    "let the launcher pass the variables on: its template needs the annotation "
    "railhead.io/launcher: openmpi (or hydra)"};

bool IsStartedByMpirun(const Json& spec) {
  const auto& containers = kube::ElementsAt(spec, {"containers"});
  return HasNamed(spec, "volumes", kVolumes) ||
         std::any_of(
             containers.begin(), containers.end(),
             [](const Json& container) { return HasNamed(container, "env", kHostLists); }) ||
         (!containers.empty() && IsIn(kPrograms, ProgramOf(containers.front())));
}

std::optional<Job> JobOfMpirun(const Json& pod) {
  std::optional<Job> job = JobOf(pod);
  if (!job || job->kind->first_worker.empty()) return std::nullopt;
  const Json* spec = kube::Find(pod, "spec");
  const bool by_mpirun = job->kind->by_mpirun || (spec != nullptr && IsStartedByMpirun(*spec));
  return by_mpirun ? job : std::nullopt;
}

Rank RankByMpirun(const Pod& pod) {
  Rank rank = {.job = pod.job ? pod.job->name : JobNameOf(pod)};
  if (!HasAnnotation(pod.json, kLauncher)) rank.missing.push_back({&kByMpirun});
  return rank;
}

}  // namespace railhead::jobs
