// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/launcher.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "jobs/labels.h"
#include "jobs/mpirun.h"
#include "operator/admission/lists.h"
#include "operator/admission/quoted.h"
#include "operator/objects/pod_rules.h"

namespace railhead::op {
namespace {

using kube::Json;
using kube::StringAt;

// Host of rank 0: the first in mpirun's list of hosts. Empty: unknown.
std::string HostOfRank0(const PodAdmission& admission, const jobs::Job& job) {
  if (!admission.containers.empty()) return gangs::DnsNameOf(admission.draft.object());
  const std::string subdomain = StringAt(admission.draft.object(), {"spec", "subdomain"});
  return absl::StrCat(job.name, job.kind->first_worker, subdomain.empty() ? "" : ".", subdomain);
}

// Returns the variables of ranks, by name.
std::map<std::string, std::string> VariablesOfRanks(const PodAdmission& admission,
                                                    const jobs::Job& job) {
  std::map<std::string, std::string> variables = admission.settings.environment;
  variables["RAILHEAD_JOB"] = job.name;
  if (std::string host = HostOfRank0(admission, job); !host.empty()) {
    variables["MASTER_ADDR"] = std::move(host);
    variables["MASTER_PORT"] = absl::StrCat(admission.config.rendezvous_port);
  }
  return variables;
}

}  // namespace

bool IsLauncher(const Json& pod) {
  return !StringAt(pod, {"metadata", "annotations", jobs::kLauncher}).empty();
}

absl::Status PassOnEnvironment(PodAdmission& admission) {
  Draft& draft = admission.draft;
  if (!IsLauncher(draft.object())) return absl::OkStatus();
  const std::string kind = admission.annotations[jobs::kLauncher];
  const std::optional<jobs::Job> job = jobs::JobOfMpirun(draft.object());
  if (!job || (kind != "openmpi" && kind != "hydra")) {
    draft.Warn(absl::StrCat("metadata.annotations[", jobs::kLauncher, "]: ", Quoted(kind),
                            " must be openmpi or hydra, on the launcher of an MPIJob, or of a "
                            "TrainJob with an MPI runtime"));
    return absl::OkStatus();
  }
  std::map<std::string, std::string> variables = VariablesOfRanks(admission, *job);
  const std::string names =
      absl::StrJoin(variables, ";", [](std::string* out, const auto& one) { *out += one.first; });
  if (kind == "openmpi") {
    variables["OMPI_MCA_mca_base_env_list"] = names;
  } else {
    variables["I_MPI_HYDRA_ENV"] = "all";
  }
  const absl::StatusOr<const Json*> containers = ListAt(draft, "/spec/containers");
  if (!containers.ok()) return containers.status();
  const size_t count = *containers == nullptr ? 0 : (*containers)->size();
  for (size_t i = 0; i < count; ++i) {
    const std::string path = absl::StrCat("/spec/containers/", i, "/env");
    for (const auto& [name, value] : variables) {
      const absl::StatusOr<const Json*> env = ListAt(draft, path);
      if (!env.ok()) return env.status();
      if (Named(*env, name) != nullptr) continue;
      const absl::Status added = draft.Append(path, {{"name", name}, {"value", value}});
      if (!added.ok()) return added;
    }
  }
  return absl::OkStatus();
}

absl::Status AdmitLauncher(PodAdmission& admission) {
  if (absl::Status passed_on = PassOnEnvironment(admission); !passed_on.ok()) return passed_on;
  if (admission.draft.patch().empty()) return absl::OkStatus();
  admission.annotations[kInjected] = RAILHEAD_VERSION;
  if (admission.settings.profile != nullptr) {
    admission.annotations[kProfile] = admission.settings.stamp;
  }
  return WriteAnnotations("", admission.annotations, admission.draft);
}

}  // namespace railhead::op
