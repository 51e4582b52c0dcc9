// SPDX-License-Identifier: Apache-2.0
#include "runtime/config/world.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable_text.h"

namespace railhead::config {
namespace {

constexpr size_t kLongestValue = 100;  // of a variable, in messages
constexpr absl::string_view kChoice = "RAILHEAD_WORLD";

bool IsSet(Lookup lookup, absl::string_view name) { return !ValueOf(lookup, name).empty(); }

// Two variables that describe a world, and the program that sets them.
struct Pair {
  absl::string_view rank;
  absl::string_view size;
  absl::string_view setter;
  Launcher launcher = Launcher::kPod;

  bool IsComplete(Lookup lookup) const { return IsSet(lookup, rank) && IsSet(lookup, size); }
};

constexpr Pair kPod = {"RANK", "WORLD_SIZE",
                       "set for the pod, by the Railhead operator or its spec"};
constexpr Pair kTorchrun = {"RANK", "WORLD_SIZE", "set by torchrun", Launcher::kTorchrun};
constexpr Pair kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                           "set by mpirun of Open MPI", Launcher::kOpenMpi};
constexpr Pair kPmi = {"PMI_RANK", "PMI_SIZE", "set by mpiexec or another launcher with PMI",
                       Launcher::kPmi};
constexpr Pair kFlux = {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "set by flux run", Launcher::kFlux};
constexpr Pair kSlurm = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "set by srun", Launcher::kSlurm};
// If SLURM_STEP_NUM_TASKS is not set. `srun --preserve-env` leaves the job's value in this one.
constexpr Pair kSlurmByJob = {"SLURM_PROCID", "SLURM_NTASKS", "set by srun", Launcher::kSlurm};
constexpr absl::string_view kPmixRank = "PMIX_RANK";

bool IsByTorchrun(Lookup lookup) { return IsSet(lookup, "TORCHELASTIC_RUN_ID"); }

// Slurm's numbers of steps that are none of srun's (batch script, interactive shell) are the
// highest ones, also written as negative numbers.
bool IsInSlurmStep(Lookup lookup) {
  constexpr uint32_t kFirstSpecial = 0xfffffff0;
  for (const absl::string_view name : {"SLURM_STEP_ID", "SLURM_STEPID"}) {
    uint32_t step = 0;
    if (absl::SimpleAtoi(ValueOf(lookup, name), &step) && step < kFirstSpecial) return true;
  }
  return false;
}

// Whether PMIX_RANK is that of a launcher without a size. Slurm's and Flux's namespaces identify
// their own.
bool IsByPmixAlone(Lookup lookup) {
  if (!IsSet(lookup, kPmixRank)) return false;
  const std::string name_space = ValueOf(lookup, "PMIX_NAMESPACE");
  return name_space.empty() || (!absl::StartsWith(name_space, "slurm.pmix.") &&
                                name_space != ValueOf(lookup, "FLUX_JOB_ID"));
}

absl::Status ReadNumber(Lookup lookup, absl::string_view name, int low, int high, int& into) {
  const std::string text = ValueOf(lookup, name);
  if (absl::SimpleAtoi(text, &into) && into >= low && into <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, "='", PrintableText(text, kLongestValue),
                                                 "' is not allowed: set it to a whole number from ",
                                                 low, " to ", high));
}

absl::StatusOr<World> Read(const Pair& pair, Lookup lookup) {
  for (const auto& [absent, present] :
       {std::pair(pair.rank, pair.size), std::pair(pair.size, pair.rank)}) {
    if (IsSet(lookup, absent)) continue;
    return absl::InvalidArgumentError(absl::StrCat(present, " is set, but ", absent,
                                                   " is not (both are ", pair.setter,
                                                   "): set both, or unset ", present));
  }
  World world;
  absl::Status read = ReadNumber(lookup, pair.rank, 0, kMostRanks - 1, world.rank);
  read.Update(ReadNumber(lookup, pair.size, 1, kMostRanks, world.size));
  if (!read.ok()) return read;
  if (world.rank >= world.size) {
    return absl::InvalidArgumentError(absl::StrCat(pair.rank, "=", world.rank, " is not below ",
                                                   pair.size, "=", world.size, " (both are ",
                                                   pair.setter, ")"));
  }
  world.source = absl::StrCat(pair.rank, "=", world.rank, " and ", pair.size, "=", world.size, " (",
                              pair.setter, ")");
  world.launcher = pair.launcher;
  world.launch = FindLaunch(pair.launcher, world.rank, world.size, lookup);
  world.rank_variable = std::string(pair.rank);
  return world;
}

// Returns the launchers that may have set variables, the innermost first.
std::vector<Pair> PossibleLaunchers(Lookup lookup) {
  std::vector<Pair> pairs;
  if (IsByTorchrun(lookup)) pairs.push_back(kTorchrun);
  pairs.push_back(kOpenMpi);
  pairs.push_back(kPmi);
  if (IsByPmixAlone(lookup)) pairs.push_back({kPmixRank, "", ""});
  pairs.push_back(kFlux);
  if (IsInSlurmStep(lookup)) {
    pairs.push_back(IsSet(lookup, kSlurm.size) ? kSlurm : kSlurmByJob);
  }
  return pairs;
}

// Returns the world of the innermost launcher; nullopt if there is none.
absl::StatusOr<std::optional<World>> ReadLauncher(Lookup lookup) {
  for (const Pair& pair : PossibleLaunchers(lookup)) {
    if (pair.size.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          kPmixRank, "=", PrintableText(ValueOf(lookup, kPmixRank), kLongestValue),
          " is set by a launcher with PMIx, such as prterun, but no variable has the number of its "
          "processes: use mpirun of Open MPI, or set RANK, WORLD_SIZE and ",
          kChoice, "=pod in each process"));
    }
    if (!IsSet(lookup, pair.rank) && !IsSet(lookup, pair.size)) continue;
    absl::StatusOr<World> world = Read(pair, lookup);
    if (!world.ok()) return world.status();
    return *std::move(world);
  }
  return std::nullopt;
}

// Returns the launcher's world, unless the pod's is larger.
absl::StatusOr<std::optional<World>> Compare(World launcher, const World& pod) {
  if (pod.size > launcher.size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "this process has two worlds, and would start in the smaller one: ", pod.source, ", and ",
        launcher.source, "; set ", kChoice, "=pod in all processes to use the ", pod.size,
        " ranks of the pods, or ", kChoice, "=launcher to use the ", launcher.size,
        launcher.size == 1 ? " rank" : " ranks", " of the launcher"));
  }
  if (pod.size != launcher.size || pod.rank != launcher.rank) {
    launcher.note =
        absl::StrCat("this process has two worlds: uses ", launcher.source, ", not ", pod.source,
                     "; set ", kChoice, "=launcher or ", kChoice, "=pod to decide");
  }
  return launcher;
}

}  // namespace

absl::StatusOr<std::optional<World>> FindWorld(Lookup lookup) {
  WorldChoice choice = WorldChoice::kAuto;
  const std::string text = ValueOf(lookup, kChoice);
  if (const std::string allowed = text.empty() ? "" : ParseWorldChoice(text, choice);
      !allowed.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(kChoice, "='",
                                                   PrintableText(text, kLongestValue),
                                                   "' is not allowed: set it to ", allowed));
  }
  const bool has_pod = kPod.IsComplete(lookup);
  if (choice == WorldChoice::kPod) {
    if (!has_pod) return std::nullopt;
    return Read(kPod, lookup);
  }
  absl::StatusOr<std::optional<World>> launcher = ReadLauncher(lookup);
  if (!launcher.ok()) return launcher;
  if (choice == WorldChoice::kLauncher) {
    if (launcher->has_value()) return launcher;
    return absl::InvalidArgumentError(
        absl::StrCat(kChoice,
                     "=launcher is set, but no launcher has started this process: no "
                     "variables of torchrun, mpirun, mpiexec, flux run or srun are set; unset ",
                     kChoice));
  }
  // Half of the pod's variables do not make a world: WORLD_SIZE alone may count something else.
  if (launcher->has_value() && (!has_pod || IsByTorchrun(lookup))) return launcher;
  if (has_pod) {
    absl::StatusOr<World> pod = Read(kPod, lookup);
    if (!pod.ok() || !launcher->has_value()) return pod;
    return Compare(**std::move(launcher), *pod);
  }
  const bool half = IsSet(lookup, kPod.rank) || IsSet(lookup, kPod.size);
  if (!half && (IsSet(lookup, kSlurmByJob.rank) || IsSet(lookup, kSlurmByJob.size))) {
    return World{.source = "one process of Slurm that srun has not started"};
  }
  return std::nullopt;
}

std::string ParseWorldChoice(const std::string& text, WorldChoice& into) {
  for (const auto& [name, choice] :
       {std::pair("auto", WorldChoice::kAuto), std::pair("launcher", WorldChoice::kLauncher),
        std::pair("pod", WorldChoice::kPod)}) {
    if (text != name) continue;
    into = choice;
    return "";
  }
  return "auto, launcher or pod";
}

}  // namespace railhead::config
