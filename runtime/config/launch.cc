// SPDX-License-Identifier: Apache-2.0
#include "runtime/config/launch.h"

#include <initializer_list>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable_text.h"

namespace railhead::config {
namespace {

bool Is(Lookup lookup, absl::string_view name, int number) {
  int value = 0;
  return absl::SimpleAtoi(ValueOf(lookup, name), &value) && value == number;
}

// Returns "A=1 B=2" of those that are set.
std::string Assignments(Lookup lookup, std::initializer_list<absl::string_view> names) {
  std::vector<std::string> parts;
  for (const absl::string_view name : names) {
    const std::string value = ValueOf(lookup, name);
    if (!value.empty()) parts.push_back(absl::StrCat(name, "=", value));
  }
  return absl::StrJoin(parts, " ");
}

// Returns "srun (SLURM_JOB_ID=1 SLURM_STEP_ID=0)"; "" without values. The end of long values
// distinguishes jobs.
std::string Name(absl::string_view launcher, const std::string& values) {
  if (values.empty()) return "";
  std::string name = absl::StrCat(launcher, " (", PrintableText(values), ")");
  // So that it can be cut anywhere.
  for (char& c : name) c = absl::ascii_isascii(static_cast<unsigned char>(c)) ? c : '?';
  if (name.size() > kLongestLaunchName) name.erase(0, name.size() - kLongestLaunchName);
  return name;
}

// An agent that replaces a failed rank counts a restart; the agents of other nodes that follow it
// do not, so with several nodes the number is not the same on all ranks. Nor is it needed there:
// each rank 0 replaces the address of the one before.
std::string StoreKey(Lookup lookup) {
  if (ValueOf(lookup, "TORCHELASTIC_USE_AGENT_STORE") != "True") return "";
  std::string key = absl::StrCat("/railhead/", ValueOf(lookup, "TORCHELASTIC_RUN_ID"), "/rank 0");
  if (Is(lookup, "GROUP_WORLD_SIZE", 1)) {
    absl::StrAppend(&key, " of restart ", ValueOf(lookup, "TORCHELASTIC_RESTART_COUNT"));
  }
  return key;
}

Launch OfOpenMpi(int size, Lookup lookup) {
  Launch launch;
  launch.name = Name("mpirun of Open MPI", Assignments(lookup, {"PMIX_NAMESPACE"}));
  if (launch.name.empty()) {
    launch.name = Name("mpirun of Open MPI", Assignments(lookup, {"OMPI_MCA_ess_base_jobid"}));
  }
  launch.one_host = Is(lookup, "OMPI_COMM_WORLD_LOCAL_SIZE", size);
  // A random number, and the addresses of the daemon of this host.
  launch.on_host = Assignments(
      lookup, {"OMPI_MCA_orte_precondition_transports", "PMIX_SERVER_URI41", "PMIX_SERVER_URI4",
               "PMIX_SERVER_URI3", "PMIX_SERVER_URI2", "PMIX_SERVER_URI21"});
  return launch;
}

Launch OfFlux(Lookup lookup) {
  Launch launch;
  launch.name = Name("flux run", Assignments(lookup, {"FLUX_JOB_ID"}));
  launch.one_host = Is(lookup, "FLUX_JOB_NNODES", 1);
  launch.on_host = Assignments(lookup, {"FLUX_URI"});
  return launch;
}

Launch OfSlurm(Lookup lookup) {
  Launch launch;
  // Each part of a heterogeneous job has a different job number.
  if (ValueOf(lookup, "SLURM_HET_SIZE").empty()) {
    launch.name = Name("srun", Assignments(lookup, {"SLURM_JOB_ID", "SLURM_STEP_ID"}));
    launch.one_host = Is(lookup, "SLURM_STEP_NUM_NODES", 1);
    launch.on_host = Assignments(lookup, {"SLURM_CLUSTER_NAME"});
  }
  return launch;
}

Launch OfPmi(int rank, int size, Lookup lookup) {
  if (ValueOf(lookup, "MPI_LOCALNRANKS").empty()) {
    if (Is(lookup, "FLUX_TASK_RANK", rank) && Is(lookup, "FLUX_JOB_SIZE", size)) {
      return OfFlux(lookup);
    }
    if (Is(lookup, "SLURM_PROCID", rank) && (Is(lookup, "SLURM_STEP_NUM_TASKS", size))) {
      return OfSlurm(lookup);
    }
  }
  Launch launch;
  launch.one_host = Is(lookup, "MPI_LOCALNRANKS", size);
  return launch;
}

}  // namespace

Launch FindLaunch(Launcher launcher, int rank, int size, Lookup lookup) {
  switch (launcher) {
    case Launcher::kPod:
      break;
    case Launcher::kTorchrun: {
      Launch launch;
      launch.name = Name("torchrun", Assignments(lookup, {"TORCHELASTIC_RUN_ID"}));
      launch.store_key = StoreKey(lookup);
      return launch;
    }
    case Launcher::kOpenMpi:
      return OfOpenMpi(size, lookup);
    case Launcher::kPmi:
      return OfPmi(rank, size, lookup);
    case Launcher::kFlux:
      return OfFlux(lookup);
    case Launcher::kSlurm:
      return OfSlurm(lookup);
  }
  return Launch();
}

}  // namespace railhead::config
