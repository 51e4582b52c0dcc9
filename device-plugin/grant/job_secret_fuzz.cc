// SPDX-License-Identifier: Apache-2.0
//
// Fuzz test of what decides about secrets of jobs: kubelet's allocation file, a pod of any tenant,
// and the master key file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "device-plugin/devices/secret_folder_name.h"
#include "device-plugin/grant/job_key.h"
#include "jobs/job.h"
#include "kube/json.h"

namespace railhead::device_plugin {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void Run(absl::string_view text) {
  const std::optional<std::vector<CheckpointEntry>> entries = ParseKubeletCheckpoint(text);
  for (const CheckpointEntry& entry : entries.value_or(std::vector<CheckpointEntry>())) {
    Require(entry.secret_folder.empty() || IsSecretFolderName(entry.secret_folder));
  }
  if (const std::string name = SecretFolderIn(text); !name.empty()) {
    Require(IsSecretFolderName(name) && absl::StrContains(text, name));
  }
  if (const absl::StatusOr<std::string> master = ParseMasterKey(text); master.ok()) {
    Require(master->size() >= 32 && absl::StartsWith(text, *master));
    Require(*JobKey(*master, "a", "b") != *JobKey(*master, "ab", ""));
  }
  const kube::Json pod = kube::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const absl::StatusOr<std::string> job = jobs::IdentityOf(pod);
  Require(job.ok() ? !job->empty() : !job.status().message().empty());
  // The same labels and annotations make different jobs in different namespaces.
  if (job.ok()) Require(*JobKey("master", "ns", *job) != *JobKey("master", "other", *job));
}

}  // namespace
}  // namespace railhead::device_plugin

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::device_plugin::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
